#include "record/agent_protocol.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"

#define HEAD 12  /* bytes of a message header */
#define MESSAGE_MAX (1 << 20)  /* bytes; agents send at most 8 KiB */

uint32_t wire_u32(const void *at)
{
	uint32_t x;
	memcpy(&x, at, sizeof x);
	return be32toh(x);
}

void wire_put_u32(void *at, uint32_t x)
{
	x = htobe32(x);
	memcpy(at, &x, sizeof x);
}

int wire_send(int s, enum wire_command command, const void *args, size_t args_len, const void *payload,
              size_t payload_len)
{
	const size_t len = HEAD + args_len + payload_len;
	unsigned char *bytes = mem_new(len, 1);
	wire_put_u32(bytes, (uint32_t)len);
	wire_put_u32(bytes + 4, command);
	wire_put_u32(bytes + 8, (uint32_t)args_len);
	if (args_len)
		memcpy(bytes + HEAD, args, args_len);
	if (payload_len)
		memcpy(bytes + HEAD + args_len, payload, payload_len);
	ssize_t n = 0;
	for (size_t at = 0; at < len && n >= 0; at += (size_t)n)
		n = send(s, bytes + at, len - at, MSG_NOSIGNAL);
	free(bytes);
	return n < 0 ? -1 : 0;
}

static int receive_all(int s, void *to, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = read(s, (char *)to + at, len - at);
		if (n == 0)
			errno = ECONNRESET;
		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

int wire_receive(int s, struct wire_message *m)
{
	unsigned char head[HEAD];
	if (receive_all(s, head, sizeof head))
		return -1;
	const size_t size = wire_u32(head), args_len = wire_u32(head + 8);
	if (size < HEAD || size > MESSAGE_MAX || args_len > size - HEAD) {
		errno = EPROTO;
		return -1;
	}
	m->command = wire_u32(head + 4);
	m->bytes = mem_resize(m->bytes, size, 1);
	m->args = m->bytes;
	m->args_len = args_len;
	m->payload = m->bytes + args_len;
	m->payload_len = size - HEAD - args_len;
	return receive_all(s, m->bytes, size - HEAD);
}
