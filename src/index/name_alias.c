/* Aliases of names, computed with SipHash-2-4. */
#include "index/name_alias.h"

#include <endian.h>
#include <sys/random.h>

#include "base/file_open.h"

#define KEY_MAX 65536  /* maximum size of a key file, bytes */

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

static void sip_rounds(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
		v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
	}
}

static void absorb_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t alias_siphash(const struct alias_key *key, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	unsigned char last[8] = { 0 };
	uint64_t v[4] = { key->word[0] ^ UINT64_C(0x736f6d6570736575), key->word[1] ^ UINT64_C(0x646f72616e646f6d),
		key->word[0] ^ UINT64_C(0x6c7967656e657261), key->word[1] ^ UINT64_C(0x7465646279746573) };
	for (size_t i = 0; i + 8 <= n; i += 8)
		absorb_word(v, get64(at + i));
	memcpy(last, at + n / 8 * 8, n % 8);
	last[7] = (unsigned char)n;
	absorb_word(v, get64(last));
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int alias_key(struct alias_key *key, const char *file, struct error *err)
{
	if (!file)
		return getrandom(key, sizeof *key, 0) == sizeof *key ?
		           0 :
		           error_system(err, NULL, "cannot get random numbers from the kernel");
	static const struct alias_key half[2] = { { { 1, 0 } }, { { 2, 0 } } };
	char *bytes = malloc(KEY_MAX);
	FILE *f = bytes ? file_open(file) : NULL;
	size_t n = f ? fread(bytes, 1, KEY_MAX, f) : 0;
	int rc = !f || ferror(f) ? error_system(err, NULL, "%s", file) : 0;
	if (rc == 0 && n == 0)
		rc = error_set(err, STATUS_USAGE, "write 32 random bytes to the file", "%s: the key file is empty", file);
	for (int i = 0; rc == 0 && i < 2; i++)
		key->word[i] = alias_siphash(&half[i], bytes, n);
	if (f)
		fclose(f);
	free(bytes);
	return rc;
}

char *alias_make(const struct alias_key *key, const char *name, char buf[ALIAS_SIZE])
{
	snprintf(buf, ALIAS_SIZE, "n%014" PRIx64, alias_siphash(key, name, strlen(name)) >> 8);
	return buf;
}

char *alias_make_handler(const struct alias_key *key, const char *name, char buf[ALIAS_SIZE])
{
	char number[24], alias[ALIAS_SIZE];
	const char *dash = strncmp(name, "irq/", 4) == 0 ? strchr(name, '-') : NULL;
	if (dash) {
		snprintf(number, sizeof number, "%.*s", (int)(dash - name), name);
		snprintf(buf, ALIAS_SIZE, "%s-%s", number, alias_make(key, dash + 1, alias));
	} else {
		snprintf(buf, ALIAS_SIZE, "%s", name);
	}
	return buf;
}
