/* Protocol between trace-cmd and its agents. A message is a header of three big-endian 32-bit words (total size, command,
 * size of the arguments), the command's arguments, and a payload. The peer is an untrusted guest: every size is checked. */
#ifndef STEALSCOPE_RECORD_AGENT_PROTOCOL_H
#define STEALSCOPE_RECORD_AGENT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

enum wire_command {
	WIRE_CLOSE = 0, WIRE_DATA = 3, WIRE_END_OF_DATA = 4, WIRE_REQUEST = 6, WIRE_RESPONSE = 7, WIRE_CLOSED = 8,
};

struct wire_message {
	uint32_t command;
	const unsigned char *args, *payload;  /* both point into `bytes` */
	size_t args_len, payload_len;      /* bytes */
	unsigned char *bytes;              /* receive buffer; NULL at first; reused by the next wire_receive(); freed by the
	                                    * caller */
};

/* Send and receive one message on socket s. Return 0, or -1 with errno. */
int wire_send(int s, enum wire_command command, const void *args, size_t args_len, const void *payload,
              size_t payload_len);
int wire_receive(int s, struct wire_message *m);

/* Convert a big-endian word, which may be unaligned, from and to host byte order. */
uint32_t wire_u32(const void *at);
void wire_put_u32(void *at, uint32_t x);

#endif
