/* YAML as a tree: what is read, where it stands, what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"
#include "study/read.h"

#include <math.h>
#include <string.h>

static fin_error err;

static fini_tree *parse(const char *text)
{
    fini_tree *tree = NULL;
    if (fini_yaml_parse(text, strlen(text), "f", &tree, &err))
        fail_msg("'%s': %s", text, err.message);
    return tree;
}

/* The message must begin with `where` and hold `part`. */
static void assert_refused_bytes(const char *text, size_t size, const char *where, const char *part)
{
    fini_tree *tree = (fini_tree *)&err;
    err = (fin_error){FIN_OK, ""};
    assert_int_equal(fini_yaml_parse(text, size, "f", &tree, &err), FIN_ERR_FORMAT);
    assert_null(tree);
    assert_int_equal(err.status, FIN_ERR_FORMAT);
    if (strncmp(err.message, where, strlen(where)) != 0 || !strstr(err.message, part))
        fail_msg("expected '%s' and '%s': %s", where, part, err.message);
}

static void assert_refused(const char *text, const char *where, const char *part)
{
    assert_refused_bytes(text, strlen(text), where, part);
}

/* ---- what is read --------------------------------------------------------------------------- */

static void assert_place(const fini_node *node, int line, int column)
{
    assert_int_equal(node->line, line);
    assert_int_equal(node->column, column);
}

static void tree__knows_places_and_kinds(void **state)
{
    (void)state;
    fini_tree *tree = parse("# a comment\na: 1\nb:\n  - x\n  - {c: \"2\", d: []}\n");
    const fini_node *root = fini_yaml_root(tree), *a = fini_node_get(root, "a"),
                    *b = fini_node_get(root, "b");
    assert_string_equal(fini_yaml_label(tree), "f");
    assert_int_equal(root->kind, FINI_MAP);
    assert_int_equal(root->count, 2);
    assert_null(root->name);
    assert_int_equal(a->kind, FINI_TEXT);
    assert_string_equal(a->text, "1");
    assert_string_equal(a->name, "a");
    assert_true(a->plain);
    assert_place(a, 2, 4);
    assert_int_equal(a->name_line, 2);
    assert_int_equal(a->name_column, 1);
    assert_int_equal(b->kind, FINI_LIST);
    assert_int_equal(b->count, 2);
    assert_place(&b->child[0], 4, 5);
    assert_null(b->child[0].name);
    const fini_node *c = fini_node_get(&b->child[1], "c"), *d = fini_node_get(&b->child[1], "d");
    assert_place(c, 5, 9);
    assert_int_equal(c->name_column, 6);
    assert_false(c->plain);
    assert_int_equal(d->kind, FINI_LIST);
    assert_int_equal(d->count, 0);
    assert_null(fini_node_get(&b->child[1], "e"));
    assert_null(fini_node_get(a, "a"));
    assert_null(fini_node_get(NULL, "a"));
    fini_yaml_destroy(tree);
    fini_yaml_destroy(NULL);
}

static void tree__columns_count_characters(void **state)
{
    (void)state;
    fini_tree *tree = parse("\xef\xbb\xbf{\xc3\xbc: \xe2\x82\xac, b: \xf0\x9f\x98\x80, c: x}\r\n");
    const fini_node *root = fini_yaml_root(tree);
    assert_string_equal(root->child[0].name, "\xc3\xbc");
    assert_string_equal(root->child[0].text, "\xe2\x82\xac");
    assert_string_equal(root->child[1].text, "\xf0\x9f\x98\x80");
    assert_int_equal(root->child[2].column - root->child[1].column, 6);
    fini_yaml_destroy(tree);
    assert_refused("t: \xe2\x82\xac\xe2\x82\xac \x01", "f:1:7:", "control");
}

static void tree__many_children_keep_order(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *text = malloc(N * 16);
    size_t used = 0;
    for (int i = 0; i < N; i++)
        used += (size_t)sprintf(text + used, "k%d: [%d]\n", N - i, i);
    fini_tree *tree = parse(text);
    const fini_node *root = fini_yaml_root(tree);
    assert_int_equal(root->count, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(atoi(root->child[i].name + 1), N - i);
        assert_int_equal(atoi(root->child[i].child[0].text), i);
        assert_int_equal(root->child[i].line, i + 1);
    }
    fini_yaml_destroy(tree);
    used += (size_t)sprintf(text + used, "k77: 1\n");
    assert_refused(text, "f:20001:1:", "line 19924");
    free(text);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void limits__bytes(void **state)
{
    (void)state;
    char *text = malloc(FINI_YAML_BYTES + 2);
    memset(text, ' ', FINI_YAML_BYTES + 2);
    memcpy(text, "a: 1\n#", 6);
    fini_tree *tree = NULL;
    assert_int_equal(fini_yaml_parse(text, FINI_YAML_BYTES, "f", &tree, &err), FIN_OK);
    fini_yaml_destroy(tree);
    assert_refused_bytes(text, FINI_YAML_BYTES + 1, "f: ", "larger than 1048576 bytes");
    free(text);
}

static void limits__depth(void **state)
{
    (void)state;
    char text[200] = "";
    for (int i = 0; i < FINI_YAML_DEPTH; i++)
        strcat(text, "[");
    for (int i = 0; i < FINI_YAML_DEPTH; i++)
        strcat(text, "]");
    fini_yaml_destroy(parse(text));
    memmove(text + 1, text, strlen(text) + 1);
    strcat(text, "]");
    assert_refused(text, "f:1:33:", "32 deep");
}

static void limits__nodes(void **state)
{
    (void)state;
    char *text = malloc(2 * FINI_YAML_NODES + 10), *p = text;
    *p++ = '[';
    for (int i = 0; i < FINI_YAML_NODES - 1; i++) { /* the list counts too */
        *p++ = 'x';
        *p++ = ',';
    }
    strcpy(p, "]");
    fini_yaml_destroy(parse(text));
    strcpy(p, "x]");
    assert_refused(text, "f:1:200000:", "more than 100000 values");
    free(text);
}

/* ---- asking a node -------------------------------------------------------------------------- */

static void node__asks_for_kinds(void **state)
{
    (void)state;
    fini_tree *tree =
        parse("{t: abc, n: 1e3, f: true, g: false, l: [], z: ~, e: , q: '', i: -inf}");
    const fini_node *map = fini_yaml_root(tree);
    const char *text = NULL;
    double number = 0;
    bool flag = false;
    assert_int_equal(fini_node_text(tree, map, "t", NULL, &text, &err), FIN_OK);
    assert_string_equal(text, "abc");
    assert_int_equal(fini_node_text(tree, map, "none", "usual", &text, &err), FIN_OK);
    assert_string_equal(text, "usual");
    assert_int_equal(fini_node_text(tree, map, "q", NULL, &text, &err), FIN_OK);
    assert_string_equal(text, "");
    assert_int_equal(fini_node_text(tree, map, "none", NULL, &text, &err), FIN_ERR_FORMAT);
    assert_string_equal(err.message, "f:1:1: 'none' is missing here: a text");
    assert_int_equal(fini_node_text(tree, map, "l", "x", &text, &err), FIN_ERR_FORMAT);
    assert_string_equal(err.message, "f:1:40: l must be a text, not a list");
    assert_int_equal(fini_node_text(tree, map, "z", "x", &text, &err), FIN_ERR_FORMAT);
    assert_int_equal(fini_node_text(tree, map, "e", "x", &text, &err), FIN_ERR_FORMAT);

    assert_int_equal(fini_node_number(tree, map, "n", NAN, &number, &err), FIN_OK);
    assert_true(number == 1000);
    assert_int_equal(fini_node_number(tree, map, "i", NAN, &number, &err), FIN_OK);
    assert_true(number == -INFINITY);
    assert_int_equal(fini_node_number(tree, map, "none", 7, &number, &err), FIN_OK);
    assert_true(number == 7);
    assert_int_equal(fini_node_number(tree, map, "none", NAN, &number, &err), FIN_ERR_FORMAT);
    assert_int_equal(fini_node_number(tree, map, "t", 7, &number, &err), FIN_ERR_FORMAT);

    assert_int_equal(fini_node_flag(tree, map, "f", -1, &flag, &err), FIN_OK);
    assert_true(flag);
    assert_int_equal(fini_node_flag(tree, map, "g", 1, &flag, &err), FIN_OK);
    assert_false(flag);
    assert_int_equal(fini_node_flag(tree, map, "none", 1, &flag, &err), FIN_OK);
    assert_true(flag);
    assert_int_equal(fini_node_flag(tree, map, "none", -1, &flag, &err), FIN_ERR_FORMAT);
    assert_int_equal(fini_node_flag(tree, map, "n", 1, &flag, &err), FIN_ERR_FORMAT);
    assert_int_equal(fini_node_flag(tree, map, "n", 1, &flag, NULL), FIN_ERR_FORMAT);
    fini_yaml_destroy(tree);
}

static void node__keys_have_a_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"take", "reduce", NULL};
    fini_tree *tree = parse("- {take: 1}\n- {take: 1,\n   redce: 2}\n- {zzzzzz: 1}\n- 3\n");
    const fini_node *list = fini_yaml_root(tree);
    assert_int_equal(fini_node_keys(tree, &list->child[0], "a claim", names, &err), FIN_OK);
    assert_int_equal(fini_node_keys(tree, &list->child[1], "a claim", names, &err), FIN_ERR_FORMAT);
    assert_string_equal(err.message, "f:3:4: a claim has no key 'redce'; did you mean 'reduce'?");
    assert_int_equal(fini_node_keys(tree, &list->child[2], "a claim", names, &err), FIN_ERR_FORMAT);
    assert_string_equal(err.message,
                        "f:4:4: a claim has no key 'zzzzzz'; allowed are take, reduce");
    assert_int_equal(fini_node_keys(tree, &list->child[3], "a claim", names, &err), FIN_ERR_FORMAT);
    fini_yaml_destroy(tree);
}

static void number__is_whole_text(void **state)
{
    (void)state;
    double x;
    assert_true(fini_read_number("1e9", &x) && x == 1e9);
    assert_true(fini_read_number(".5", &x) && x == 0.5);
    assert_true(fini_read_number("-3", &x) && x == -3);
    assert_true(fini_read_number("inf", &x) && x == INFINITY);
    static const char *const bad[] = {"", " 1", "1 ", "1x", "nan", "0x10", "1,5", "--1", "1e999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (fini_read_number(bad[i], &x))
            fail_msg("'%s' was read as %g", bad[i], x);
}

static void messages__are_cut_and_clean(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'k', sizeof text);
    memcpy(text, "? ", 2);
    strcpy(text + 2500, "\n: 1\n");
    static const char *const names[] = {"a", NULL};
    fini_tree *tree = NULL;
    char label[2000];
    memset(label, 'l', sizeof label);
    label[0] = '\x1b';
    label[sizeof label - 1] = '\0';
    assert_int_equal(fini_yaml_parse(text, strlen(text), label, &tree, &err), FIN_OK);
    assert_int_equal(fini_node_keys(tree, fini_yaml_root(tree), "it", names, &err), FIN_ERR_FORMAT);
    assert_true(strlen(err.message) < 400);
    assert_null(strchr(err.message, '\x1b'));
    assert_non_null(strstr(err.message, "allowed is a"));
    fini_yaml_destroy(tree);
}

/* ---- faults and random bytes ---------------------------------------------------------------- */

static fin_status parse_once(void *user, fin_error *e)
{
    fini_tree *tree;
    fin_status status = fini_yaml_parse(user, strlen(user), "f", &tree, e);
    fini_node value;
    if (status)
        return status;
    status = fini_tree_graft(tree, "a.b", "[1, {c: 2, d: 3}]", false, &value, e);
    if (!status)
        status = fini_node_put(tree, fini_yaml_root(tree), "new", &value, e);
    fini_yaml_destroy(tree);
    return status;
}

static void tree__survives_allocation_faults(void **state)
{
    (void)state;
    enum { N = 3000 };
    char *text = malloc(N * 12);
    size_t used = 0;
    for (int i = 0; i < N; i++)
        used += (size_t)sprintf(text + used, "k%d: [1]\n", i);
    assert_true(fault_every(parse_once, text) >= 10);
    free(text);
}

/* Whatever comes: a tree or a message, and nothing left behind. The bytes are those that mean
 * something in YAML, so that most inputs get past the first line. */
static void tree__survives_random_text(void **state)
{
    (void)state;
    static const char letters[] = "ab:,-?[]{}#&*!|>'\"%@`<~ \n\n  \t\\0x\r\xc3\xbc";
    uint64_t seed = 12345;
    int read = 0, refused = 0;
    fault_begin(-1, 0);
    for (int round = 0; round < 30000; round++) {
        char text[64];
        size_t size = (size_t)round % sizeof text;
        for (size_t i = 0; i < size; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = letters[(seed >> 33) % (sizeof letters - 1)];
        }
        fini_tree *tree = NULL;
        err.message[0] = '\0';
        fin_status status = fini_yaml_parse(text, size, "f", &tree, &err);
        if (status ? tree || !err.message[0] : !tree)
            fail_msg("round %d: status %d, message '%s'", round, status, err.message);
        read += !status;
        refused += status != FIN_OK;
        fini_yaml_destroy(tree);
    }
    long live = atomic_load(&fault_live);
    fault_end();
    assert_int_equal(live, 0);
    assert_true(read > 100 && refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree__knows_places_and_kinds),
        cmocka_unit_test(tree__columns_count_characters),
        cmocka_unit_test(tree__many_children_keep_order),
        cmocka_unit_test(limits__bytes),
        cmocka_unit_test(limits__depth),
        cmocka_unit_test(limits__nodes),
        cmocka_unit_test(node__asks_for_kinds),
        cmocka_unit_test(node__keys_have_a_nearest),
        cmocka_unit_test(number__is_whole_text),
        cmocka_unit_test(messages__are_cut_and_clean),
        cmocka_unit_test(tree__survives_allocation_faults),
        cmocka_unit_test(tree__survives_random_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
