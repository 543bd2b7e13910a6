static const char *const text_haproxy[] = {
	"# HAProxy: one request per stream, from its arrival until it is freed.  HTTP/1 and HTTP/2 have a stream per request.\n",
	"requests: haproxy\n",
	"about: streams (HTTP requests, TCP connections), until they are freed\n",
	"programs: [haproxy]\n",
	"paths: [/usr/sbin/haproxy]\n",
	"probes:\n",
	"  - {op: receive, return: stream_new, key: retval}\n",
	"  - {op: resume, function: process_stream, key: arg2}\n",
	"  - {op: yield, return: process_stream}\n",
	"  - {op: end, function: stream_free, key: arg1}\n",
	NULL
};
static const char *const text_lighttpd[] = {
	"# lighttpd 1.4: from the arrival of a request to the end of its response.  The first member of a connection is its\n",
	"# HTTP/1 request, so that both have one address; streams of HTTP/2 have their own and are not resumed.\n",
	"requests: lighttpd\n",
	"about: requests, to the end of the response\n",
	"programs: [lighttpd]\n",
	"paths: [/usr/sbin/lighttpd]\n",
	"probes:\n",
	"  - {op: receive, function: http_request_headers_process, key: arg1}\n",
	"  - {op: receive, function: http_request_headers_process_h2, key: arg1, optional: yes}\n",
	"  - {op: resume, function: connection_state_machine, key: arg1}\n",
	"  - {op: yield, return: connection_state_machine}\n",
	"  - {op: end, function: plugins_call_handle_request_done, key: arg1}\n",
	"  - {op: drop, function: request_reset, key: arg1}\n",
	NULL
};
static const char *const text_mariadb[] = {
	"# MariaDB 10.5 and later: one request per command of a client (a query, the execution of a prepared statement).\n",
	"requests: mariadb\n",
	"about: commands of clients\n",
	"programs: [mariadbd, mysqld]\n",
	"paths: [/usr/sbin/mariadbd]\n",
	"probes:\n",
	"  - {op: receive, function: _Z16dispatch_command19enum_server_commandP3THDPcjb, label: arg3}\n",
	"  - {op: end, return: _Z16dispatch_command19enum_server_commandP3THDPcjb}\n",
	NULL
};
static const char *const text_nginx[] = {
	"# nginx: from the arrival of a request until it is logged and freed.\n",
	"requests: nginx\n",
	"about: requests, until they are logged and freed\n",
	"programs: [nginx]\n",
	"paths: [/usr/sbin/nginx]\n",
	"probes:\n",
	"  - {op: receive, function: ngx_http_process_request, key: arg1}\n",
	"  - {op: resume, function: ngx_http_core_run_phases, key: arg1}\n",
	"  - {op: resume, function: ngx_http_send_header, key: arg1}\n",
	"  - {op: resume, function: ngx_http_output_filter, key: arg1}\n",
	"  - {op: resume, function: ngx_http_finalize_request, key: arg1}\n",
	"  - {op: yield, return: ngx_http_run_posted_requests}\n",
	"  - {op: end, function: ngx_http_free_request, key: arg1}\n",
	NULL
};
static const char *const text_postgresql[] = {
	"# PostgreSQL, built with --enable-dtrace as in Debian: one request per query of the simple protocol (PQexec, psql, pgbench).\n",
	"# A query that fails has no end.  The format is described in stealscope-requests(7).\n",
	"requests: postgresql\n",
	"about: queries of the simple protocol\n",
	"programs: [postgres]\n",
	"paths: [/usr/lib/postgresql/*/bin/postgres, /usr/pgsql-*/bin/postgres]\n",
	"nested: yes\n",
	"probes:\n",
	"  - {op: receive, usdt: \"postgresql:query__start\", label: arg1}\n",
	"  - {op: end, usdt: \"postgresql:query__done\"}\n",
	NULL
};
static const char *const text_postgresql_execute[] = {
	"# PostgreSQL: one request per execution of a statement, also of prepared ones (JDBC, PQexecPrepared).  Parsing and planning\n",
	"# are not part of it.  A statement that changes rows has a nested pair of probes.\n",
	"requests: postgresql_execute\n",
	"about: executions of statements, also of prepared ones\n",
	"programs: [postgres]\n",
	"paths: [/usr/lib/postgresql/*/bin/postgres, /usr/pgsql-*/bin/postgres]\n",
	"nested: yes\n",
	"probes:\n",
	"  - {op: start, usdt: \"postgresql:query__execute__start\"}\n",
	"  - {op: end, usdt: \"postgresql:query__execute__done\"}\n",
	NULL
};
static const char *const text_postgresql_transaction[] = {
	"# PostgreSQL: one request per transaction.\n",
	"requests: postgresql_transaction\n",
	"about: transactions, until commit or abort\n",
	"programs: [postgres]\n",
	"paths: [/usr/lib/postgresql/*/bin/postgres, /usr/pgsql-*/bin/postgres]\n",
	"probes:\n",
	"  - {op: receive, usdt: \"postgresql:transaction__start\"}\n",
	"  - {op: end, usdt: \"postgresql:transaction__commit\"}\n",
	"  - {op: end, usdt: \"postgresql:transaction__abort\"}\n",
	NULL
};
static const char *const text_redis[] = {
	"# Redis: one request per command.  A command that waits (BLPOP) ends when the client is blocked.\n",
	"requests: redis\n",
	"about: commands\n",
	"programs: [redis-server, redis-check-rdb, redis-check-aof]\n",
	"paths: [/usr/bin/redis-server]\n",
	"probes:\n",
	"  - {op: receive, function: processCommand}\n",
	"  - {op: end, return: processCommand}\n",
	NULL
};

static const struct { const char *name, *const *line; } shipped[] = {
	{ "haproxy", text_haproxy },
	{ "lighttpd", text_lighttpd },
	{ "mariadb", text_mariadb },
	{ "nginx", text_nginx },
	{ "postgresql", text_postgresql },
	{ "postgresql_execute", text_postgresql_execute },
	{ "postgresql_transaction", text_postgresql_transaction },
	{ "redis", text_redis },
};
