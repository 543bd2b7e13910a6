#include "index/name_alias.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KEY_MOST 65536  /* bytes of a key file */

static uint64_t get64(const unsigned char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return le64toh(word);
}

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
		v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
	}
}

static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

uint64_t alias_siphash(const struct alias_key *key, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	unsigned char last[8] = { 0 };
	uint64_t v[4] = { key->word[0] ^ UINT64_C(0x736f6d6570736575), key->word[1] ^ UINT64_C(0x646f72616e646f6d),
		key->word[0] ^ UINT64_C(0x6c7967656e657261), key->word[1] ^ UINT64_C(0x7465646279746573) };
	for (size_t i = 0; i + 8 <= n; i += 8)
		take(v, get64(at + i));
	memcpy(last, at + n / 8 * 8, n % 8);
	last[7] = (unsigned char)n;
	take(v, get64(last));
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int alias_key(struct alias_key *key, const char *file, struct error *err)
{
	if (!file)
		return getrandom(key, sizeof *key, 0) == sizeof *key ? 0 : error_system(err, NULL, "random numbers");
	static const struct alias_key half[2] = { { { 1, 0 } }, { { 2, 0 } } };
	char *bytes = malloc(KEY_MOST);
	FILE *f = bytes ? fopen(file, "re") : NULL;
	size_t n = f ? fread(bytes, 1, KEY_MOST, f) : 0;
	int rc = !f || ferror(f) ? error_system(err, NULL, "%s", file) : 0;
	if (rc == 0 && n == 0)
		rc = error_set(err, STATUS_USAGE, "put 32 random bytes there", "%s: an empty key", file);
	for (int i = 0; rc == 0 && i < 2; i++)
		key->word[i] = alias_siphash(&half[i], bytes, n);
	if (f)
		fclose(f);
	free(bytes);
	return rc;
}

char *alias_of(const struct alias_key *key, const char *name, char buf[ALIAS_TEXT])
{
	snprintf(buf, ALIAS_TEXT, "n%014" PRIx64, alias_siphash(key, name, strlen(name)) >> 8);
	return buf;
}

char *alias_of_handler(const struct alias_key *key, const char *name, char buf[ALIAS_TEXT])
{
	char number[24], alias[ALIAS_TEXT];
	const char *dash = strncmp(name, "irq/", 4) == 0 ? strchr(name, '-') : NULL;
	if (dash) {
		snprintf(number, sizeof number, "%.*s", (int)(dash - name), name);
		snprintf(buf, ALIAS_TEXT, "%s-%s", number, alias_of(key, dash + 1, alias));
	} else {
		snprintf(buf, ALIAS_TEXT, "%s", name);
	}
	return buf;
}
