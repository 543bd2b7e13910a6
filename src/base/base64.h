/* Base64 (RFC 4648). */
#pragma once

#include <stddef.h>

char *base64_encode(const void *data, size_t len);           /* the caller frees */
unsigned char *base64_decode(const char *text, size_t *len);  /* NULL: not base64; the caller frees */
