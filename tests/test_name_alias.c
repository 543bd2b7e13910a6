/* Aliases of names: the hash has the published test values, and only names change. */
#include <string.h>

#include "index/name_alias.h"
#include "test.h"

static void hash_is_siphash(void **state)
{
	(void)state;
	const struct alias_key key = { { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) } };
	unsigned char bytes[15];
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(alias_siphash(&key, bytes, 15), UINT64_C(0xa129ca6149be45e5));
	assert_int_equal(alias_siphash(&key, bytes, 0), UINT64_C(0x726fdb47dd0e0e31));
	assert_int_equal(alias_siphash(&key, bytes, 8), UINT64_C(0x93f5f5799a932462));
}

static void handlers_keep_their_numbers(void **state)
{
	(void)state;
	const struct alias_key key = { { 1, 2 } };
	char alias[ALIAS_SIZE], device[ALIAS_SIZE];
	alias_make(&key, "eth-secret", device);
	assert_string_equal(alias_make_handler(&key, "softirq/7-SCHED", alias), "softirq/7-SCHED");
	assert_string_equal(alias_make_handler(&key, "thread", alias), "thread");
	alias_make_handler(&key, "irq/27-eth-secret", alias);
	assert_memory_equal(alias, "irq/27-n", 8);
	assert_string_equal(alias + 7, device);
}

static void keys_differ(void **state)
{
	(void)state;
	struct alias_key a, b;
	struct error err;
	char x[ALIAS_SIZE], y[ALIAS_SIZE];
	assert_int_equal(alias_key(&a, NULL, &err), 0);
	assert_int_equal(alias_key(&b, NULL, &err), 0);
	assert_string_not_equal(alias_make(&a, "web", x), alias_make(&b, "web", y));
	assert_int_equal(alias_key(&a, "/nowhere", &err), -1);
	assert_int_equal(alias_key(&a, "/dev/null", &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_siphash),
		cmocka_unit_test(handlers_keep_their_numbers),
		cmocka_unit_test(keys_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
