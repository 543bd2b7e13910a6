#include "base/base64.h"

#include "base/base.h"

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t len)
{
	const unsigned char *b = data;
	char *text = mem_new((len + 2) / 3 * 4 + 1, 1), *to = text;
	for (size_t i = 0; i < len; i += 3) {
		const uint32_t x = (uint32_t)b[i] << 16 | (i + 1 < len ? (uint32_t)b[i + 1] << 8 : 0) |
		                   (i + 2 < len ? b[i + 2] : 0U);
		*to++ = digit[x >> 18];
		*to++ = digit[x >> 12 & 63];
		*to++ = i + 1 < len ? digit[x >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digit[x & 63] : '=';
	}
	return text;
}

unsigned char *base64_decode(const char *text, size_t *len)
{
	const size_t n = strlen(text);
	unsigned char *data = mem_new(n / 4 * 3 + 1, 1);
	*len = 0;
	for (size_t i = 0; i < n; i += 4) {
		uint32_t x = 0;
		unsigned fill = 0;
		for (size_t k = i; k < i + 4; k++) {
			const bool pad = k < n && text[k] == '=' && i + 4 == n && k >= i + 2;
			const char *at = k < n && text[k] && !pad && !fill ? strchr(digit, text[k]) : NULL;
			if (!at && !pad) {
				free(data);
				return NULL;
			}
			fill += pad;
			x = x << 6 | (at ? (uint32_t)(at - digit) : 0);
		}
		for (unsigned k = 0; k < 3 - fill; k++)
			data[(*len)++] = (unsigned char)(x >> (16 - 8 * k));
	}
	return data;
}
