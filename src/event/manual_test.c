/* SPDX-License-Identifier: Apache-2.0 */
/* event/manual_test.c - the committed documents against the table; VITRINE_UPDATE=1 writes them anew
 *
 * VITRINE_DOCS names the folder.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/json.h"
#include "base/test.h"
#include "event/event.h"

static void check_document(const char *name, void (*make)(struct buf *out))
{
	_cleanup_(buf_done) struct buf made = BUF(MIB), kept = BUF(MIB);
	const char *dir = getenv("VITRINE_DOCS");
	_free_ char *path = mem_fmt("%s/%s", dir ? dir : ".", name);
	struct err e = ERR_INIT;

	make(&made);
	CHECK(!made.is_over);
	if (getenv("VITRINE_UPDATE")) {
		_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		CHECK(fd >= 0 && io_write_all(fd, made.p, made.n) == 0);
	}
	if (io_read_file(path, &kept, &e) < 0)
		CHECK_STR(e.msg, "a document that can be read");
	/* Not CHECK_STR: a whole page in the log helps nobody. */
	if (!str_eq(buf_cstr(&made), buf_cstr(&kept)))
		CHECK_STR(name, "as the table says; 'make docs' writes it anew");
}

TEST(the_manual_is_the_table)
{
	check_document("EVENTS.md", event_manual);
}

TEST(the_schema_is_the_table)
{
	_cleanup_(buf_done) struct buf made = BUF(MIB);
	struct json_doc doc;
	struct err e = ERR_INIT;
	int r;

	check_document("events.schema.json", event_schema);
	event_schema(&made);
	r = json_parse(buf_cstr(&made), made.n, &doc, &e);
	CHECK_STR(r < 0 ? e.msg : "", "");
	if (r == 0)
		json_done(&doc);
}

TEST_MAIN()
