/* What the labels of the bags are: numbers, or classes.
 *
 * For training, texts are classes, and so are two different numbers, or at most 20 different whole
 * numbers if there are more than three times as many bags; other numbers are numbers. Numbers and
 * texts side by side are most often a missing value written as "NA", so they are refused unless
 * classes were asked for. For prediction the model says what they are. */
#include "data/bags.h"
#include "math/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct summary {
    int64_t numbers, texts, missing;
    int64_t number_at, text_at, missing_at; /* the first of each kind */
} summary;

static const char *bag_name(const fini_labels *labels, int64_t i, char shown[48])
{
    if (!labels->bags) {
        snprintf(shown, 48, "%lld", (long long)i);
        return shown;
    }
    const char *name = fini_names_get(labels->bags, i);
    return fini_printable(name, strlen(name), shown, 48);
}

static const char *text_of(const fini_labels *labels, int64_t i, char shown[48])
{
    const char *text = fini_names_get(&labels->texts, labels->text[i]);
    return fini_printable(text, strlen(text), shown, 48);
}

/* Fails for the bag i: "x.csv, bag 'b7': the label 'a' ..." */
static fin_status fail_text(const fini_labels *labels, int64_t i, const char *why, fin_error *err)
{
    char bag[48], text[48];
    return fini_fail(err, FIN_ERR_FORMAT, "%.150s, bag '%s': the label '%s' %s", labels->file,
                     bag_name(labels, i, bag), text_of(labels, i, text), why);
}

static fin_status look(const fini_labels *labels, summary *s, fin_error *err)
{
    char bag[48];
    *s = (summary){0};
    for (int64_t i = 0; i < labels->n; i++) {
        if (isinf(labels->value[i]))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.150s, bag '%s': the label is infinite; a finite number or a class "
                             "is needed",
                             labels->file, bag_name(labels, i, bag));
        if (!isnan(labels->value[i]))
            s->number_at = s->numbers++ ? s->number_at : i;
        else if (labels->text && labels->text[i] >= 0)
            s->text_at = s->texts++ ? s->text_at : i;
        else
            s->missing_at = s->missing++ ? s->missing_at : i;
    }
    return FIN_OK;
}

/* ---- classes ---------------------------------------------------------------------------------- */

/* Different numbers, ascending, of which there are at most `most`; most + 1: there are more. */
static int64_t different(const fini_labels *labels, int64_t most, double *found, bool *whole)
{
    int64_t count = 0;
    *whole = true;
    for (int64_t i = 0; i < labels->n; i++) {
        double y = labels->value[i];
        if (isnan(y))
            continue;
        *whole = *whole && y == floor(y);
        int64_t low = fini_first_from(count, found, y);
        if (low < count && found[low] == y)
            continue;
        if (count == most)
            return most + 1;
        memmove(found + low + 1, found + low, (size_t)(count - low) * sizeof *found);
        found[low] = y == 0 ? 0 : y; /* no minus zero in a name */
        count++;
    }
    return count;
}

/* The shortest decimal that reads back as the number. */
static void write_number(double number, char text[FINI_NUMBER])
{
    for (int digits = 15; digits <= 17; digits++) {
        fini_print_double(number, digits, text, FINI_NUMBER);
        if (fini_strtod(text, NULL) == number)
            return;
    }
}

static fin_status too_many(const fini_labels *labels, fin_error *err)
{
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.200s: there are more than %d different labels, too many for classes; is it "
                     "the right column, and are they numbers?",
                     labels->file, FINI_BAGS_CLASSES_MAX);
}

/* Puts a name in its place among the first `count` of order, by bytes. */
static void insert_name(const fini_names *names, int32_t *order, int64_t count, int32_t number)
{
    int64_t at = count;
    const char *name = fini_names_get(names, number);
    for (; at > 0 && strcmp(fini_names_get(names, order[at - 1]), name) > 0; at--)
        order[at] = order[at - 1];
    order[at] = number;
}

/* Number of the text that the number's own spelling is, adding it if it is new: for classes where
 * numbers and texts stand side by side. */
static fin_status number_text(fini_names *texts, double number, int64_t *at, fin_error *err)
{
    char text[FINI_NUMBER];
    write_number(number, text);
    return fini_names_put(texts, text, strlen(text), at, err);
}

/* What R and pandas write where nothing is known is a class here, as some class may be called so. */
static void note_blank(const fin_bag_set *set, const char *name)
{
    static const char *const blank[] = {"na", "n/a", "nan", "null", "?"};
    for (size_t k = 0; k < sizeof blank / sizeof *blank; k++)
        if (strcasecmp(name, blank[k]) == 0)
            fini_bags_note(set,
                           "'%s' is taken as a class; if it says that a label is not known, leave "
                           "these bags out",
                           name);
}

static fin_status text_classes(fin_bag_set *set, fini_labels *labels, fin_error *err)
{
    fini_names *all = &labels->texts;
    int32_t order[FINI_BAGS_CLASSES_MAX + 1], place[FINI_BAGS_CLASSES_MAX + 1];
    fin_status status = FIN_OK;
    int64_t at = 0, share = set->bags.first, n = set->bags.n;
    for (int64_t i = 0; i < labels->n && !status; i++) {
        if (!isnan(labels->value[i]))
            status = number_text(all, labels->value[i], &at, err);
        if (all->count > FINI_BAGS_CLASSES_MAX)
            return too_many(labels, err);
    }
    for (int32_t k = 0; k < all->count && !status; k++)
        insert_name(all, order, k, k);
    for (int32_t k = 0; k < all->count && !status; k++) {
        const char *name = fini_names_get(all, order[k]);
        place[order[k]] = k;
        note_blank(set, name);
        status = fini_names_add(&set->class_names, name, strlen(name), err);
    }
    for (int64_t i = 0; i < n && !status; i++) {
        at = labels->text[share + i];
        if (!isnan(labels->value[share + i]))
            status = number_text(all, labels->value[share + i], &at, err);
        set->labels[i] = at < 0 ? NAN : place[at];
    }
    set->classes = all->count;
    return status;
}

static fin_status number_classes(fin_bag_set *set, const fini_labels *labels, int64_t classes,
                                 const double *found, fin_error *err)
{
    fin_status status = FIN_OK;
    char text[FINI_NUMBER];
    for (int64_t c = 0; c < classes && !status; c++) {
        write_number(found[c], text);
        status = fini_names_add(&set->class_names, text, strlen(text), err);
    }
    for (int64_t i = 0; i < set->bags.n; i++) {
        double y = labels->value[set->bags.first + i];
        int64_t c = 0;
        while (c < classes && found[c] != y)
            c++;
        set->labels[i] = c < classes ? (double)c : NAN;
    }
    set->classes = classes;
    return status;
}

/* ---- training --------------------------------------------------------------------------------- */

static fin_status decide(fin_bag_set *set, const fin_bags_source *source, fini_labels *labels,
                         const summary *s, fin_error *err)
{
    const char *kind = source->kind ? source->kind : "auto";
    bool automatic = strcmp(kind, "auto") == 0, wanted = strcmp(kind, "classes") == 0, whole;
    double found[FINI_BAGS_CLASSES_MAX + 1];
    if (s->texts && !wanted && s->numbers)
        return fail_text(labels, s->text_at,
                         "is no number, but others are; leave out bags without a label, or ask for "
                         "classes",
                         err);
    if (s->texts && !wanted && !automatic)
        return fail_text(labels, s->text_at, "is no number; numbers are needed for a regression",
                         err);
    if (s->texts)
        return text_classes(set, labels, err);
    int64_t count = different(labels, FINI_BAGS_CLASSES_MAX, found, &whole);
    bool few = count == 2 || (whole && count <= FINI_BAGS_AUTO_CLASSES && 3 * count < labels->n);
    if (wanted && count > FINI_BAGS_CLASSES_MAX)
        return too_many(labels, err);
    if (count == 1 && !source->unlabelled)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: %s%lld bag%s the label %.15g; labels that differ are needed",
                         labels->file, labels->n == 1 ? "the " : "all ", (long long)labels->n,
                         labels->n == 1 ? " has" : "s have", found[0]);
    if (wanted || (automatic && few))
        return number_classes(set, labels, count, found, err);
    memcpy(set->labels, labels->value + set->bags.first, (size_t)set->bags.n * sizeof *set->labels);
    set->classes = 0;
    return FIN_OK;
}

static fin_status train(fin_bag_set *set, const fin_bags_source *source, fini_labels *labels,
                        const summary *s, fin_error *err)
{
    char shown[48];
    if (s->missing == labels->n && source->unlabelled)
        return FIN_OK; /* the caller leaves them away */
    if (s->missing && !source->unlabelled)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, bag '%s' has no label (%lld of %lld bags have none); leave them "
                         "out for fitting",
                         labels->file, bag_name(labels, s->missing_at, shown),
                         (long long)s->missing, (long long)labels->n);
    FINI_TRY(decide(set, source, labels, s, err));
    if (set->classes == 1 && !source->unlabelled)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: %s%lld bag%s of class '%s'; at least two classes are needed",
                         labels->file, labels->n == 1 ? "the " : "all ", (long long)labels->n,
                         labels->n == 1 ? " is" : "s are",
                         FINI_SHOW(fini_names_get(&set->class_names, 0)));
    return FIN_OK;
}

/* ---- prediction ------------------------------------------------------------------------------- */

/* The class of the model with this text, or with this number however it is written. */
static int64_t known_class(const fin_bags_source *source, const double *numbers, const char *text,
                           double number)
{
    for (int64_t c = 0; c < source->class_count; c++)
        if (text ? strcmp(source->class_names[c], text) == 0 : numbers[c] == number)
            return c;
    return -1;
}

/* Neighbours often have the same label, so that the last answer is kept. */
static void match_classes(fin_bag_set *set, const fin_bags_source *source,
                          const fini_labels *labels, const double *numbers)
{
    int64_t unknown = 0, last_text = -1, found = -1;
    double last = NAN;
    char bag[48];
    for (int64_t i = 0; i < set->bags.n; i++) {
        int64_t k = set->bags.first + i, text = labels->text ? labels->text[k] : -1;
        double y = labels->value[k];
        set->labels[i] = NAN;
        if (isnan(y) && text < 0)
            continue;
        if (text < 0 ? y != last : text != last_text)
            found = known_class(source, numbers,
                                text < 0 ? NULL : fini_names_get(&labels->texts, text), y);
        last = y;
        last_text = text;
        if (found >= 0)
            set->labels[i] = (double)found;
        else if (unknown++ == 0)
            fini_bags_note(set,
                           "bag '%s' and perhaps others have a label that is no class of the "
                           "model; it is taken as unknown",
                           bag_name(labels, k, bag));
    }
}

static fin_status predict(fin_bag_set *set, const fin_bags_source *source,
                          const fini_labels *labels, const summary *s, fin_error *err)
{
    if (source->class_count == 0 && s->texts)
        return fail_text(labels, s->text_at, "is no number, but the model predicts numbers", err);
    if (source->class_count == 0) {
        memcpy(set->labels, labels->value + set->bags.first,
               (size_t)set->bags.n * sizeof *set->labels);
        return FIN_OK;
    }
    FINI_OWN(err, "classes", double, numbers, source->class_count, 1);
    for (int64_t c = 0; c < source->class_count; c++) {
        const char *name = source->class_names[c], *end = name + strlen(name);
        if (fini_decimal(name, end, &numbers[c]) != end)
            numbers[c] = NAN; /* equal to no number */
    }
    match_classes(set, source, labels, numbers);
    return FIN_OK;
}

fin_status fini_bags_labels(fin_bag_set *set, const fin_bags_source *source, fini_labels *labels,
                            fin_error *err)
{
    summary s;
    fin_status status = FIN_OK;
    for (int64_t c = 0; c < source->class_count && !status; c++) {
        const char *name = source->class_names[c];
        status = fini_names_add(&set->class_names, name, strlen(name), err);
    }
    set->classes = source->class_count > 0 ? source->class_count : 0;
    if (status || !labels)
        return status;
    FINI_TRY(look(labels, &s, err));
    FINI_ROOM(err, "labels", set->labels, set->bags.n + 1, 1);
    status = fini_bags_training(source) ? train(set, source, labels, &s, err)
                                        : predict(set, source, labels, &s, err);
    bool none = s.missing == labels->n; /* a column of nothing is as good as no column */
    set->bags.labels = none ? NULL : set->labels;
    return status;
}
