#include "export/tables.h"

#define FIELD_ROW(code, name, type, null) { name, FIELD_##type, null },
#define TABLE_FIELDS(code, list, name, description) \
	static const struct table_field fields_of_##code[] = { list(FIELD_ROW) };
TABLES(TABLE_FIELDS)

#define TABLE_ROW(code, list, name, description) \
	[code] = { name, description, fields_of_##code, sizeof fields_of_##code / sizeof *fields_of_##code },
const struct export_shape tables[TABLE_COUNT] = { TABLES(TABLE_ROW) };

#define TABLE_FITS(code, list, name, description) \
	_Static_assert(sizeof fields_of_##code / sizeof *fields_of_##code <= TABLE_FIELDS_MAX, name);
TABLES(TABLE_FITS)

int table_time(const struct export_shape *t)
{
	for (size_t i = 0; i < t->fields; i++)
		if (strcmp(t->field[i].name, "ts") == 0 || strcmp(t->field[i].name, "bucket_ts") == 0)
			return (int)i;
	return -1;
}

char *table_columns(const struct export_shape *t, const struct column_syntax *syntax)
{
	char *text = mem_dup("");
	for (size_t i = 0; i < t->fields; i++) {
		const struct table_field *f = &t->field[i];
		const char *const *around = f->nullable ? syntax->nullable : syntax->required;
		char *more = mem_printf("%s%s\"%s\" %s%s%s", text, i ? ", " : "", f->name, around[0], syntax->type[f->type],
		                        around[1]);
		free(text);
		text = more;
	}
	return text;
}
