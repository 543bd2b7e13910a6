/* What trace-cmd and its agents say to each other: messages of three big-endian words (size, command, size of what the
 * command has), that part, and the rest.  The other end is a guest: no size is believed. */
#ifndef STEALSCOPE_RECORD_AGENT_PROTOCOL_H
#define STEALSCOPE_RECORD_AGENT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

enum wire_command {
	WIRE_CLOSE = 0, WIRE_DATA = 3, WIRE_END_OF_DATA = 4, WIRE_REQUEST = 6, WIRE_RESPONSE = 7, WIRE_CLOSED = 8,
};

struct wire_message {
	uint32_t command;
	const unsigned char *part, *rest;  /* in bytes */
	size_t part_len, rest_len;
	unsigned char *bytes;              /* the caller frees, or hands on to the next message */
};

/* 0, or -1 with errno. */
int wire_send(int s, enum wire_command command, const void *part, size_t part_len, const void *rest, size_t rest_len);
int wire_receive(int s, struct wire_message *m);

uint32_t wire_u32(const void *at);
void wire_put_u32(void *at, uint32_t x);

#endif
