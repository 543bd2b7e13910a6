/* Classes of events in a text: a name, with the fields of its first line, bound to a layout's rules. */
#pragma once

#include "trace/reader.h"
#include "trace/text/text_line.h"

struct text_classes;

struct text_classes *text_classes_new(struct event_mapping *m, struct string_cache *names);
void text_classes_free(struct text_classes *c);  /* c may be NULL */

/* Adds the line's class, unless it is known. */
void text_classes_add(struct text_classes *c, const struct text_line *l);
/* Sets the mapping's best layout and enabled events, after all classes were added. */
void text_classes_choose(struct text_classes *c);
/* Fills *ev from the line, except its time. */
void text_classes_fill(struct text_classes *c, const struct text_line *l, struct event *ev);
