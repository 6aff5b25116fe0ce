#include "call.h"

#include "web.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

fin_error web_error;

const char *web_message(void)
{
    return web_error.message;
}

double *web_take(int numbers)
{
    return numbers > 0 ? calloc((size_t)numbers, sizeof(double)) : NULL;
}

void web_give_back(double *numbers)
{
    free(numbers);
}

int web_refuse(const char *sentence)
{
    web_error.status = FIN_ERR_ARGUMENT;
    snprintf(web_error.message, sizeof web_error.message, "%s", sentence);
    return -1;
}

double web_number(web_in *in)
{
    if (in->left < 1) {
        in->bad = true;
        return 0;
    }
    in->left--;
    return *in->at++;
}

int64_t web_whole(web_in *in)
{
    double x = web_number(in);
    if (!(x >= -0x1p53 && x <= 0x1p53) || x != (double)(int64_t)x) {
        in->bad = true;
        return 0;
    }
    return (int64_t)x;
}

int web_choice(web_in *in, int count)
{
    int64_t x = web_whole(in);
    if (x < 0 || x >= count) {
        in->bad = true;
        return 0;
    }
    return (int)x;
}

const double *web_array(web_in *in, int64_t n)
{
    const double *array = in->at;
    if (n < 0 || n > in->left) {
        in->bad = true;
        return NULL;
    }
    in->at += n;
    in->left -= (int)n;
    return array;
}

bool web_ready(const web_in *in, int64_t answers, int room)
{
    web_error = (fin_error){FIN_OK, ""};
    if (in->bad || in->left != 0)
        return web_refuse("these are not the numbers that this call takes; web.h says which") == 0;
    if (answers < 0 || answers > room)
        return web_refuse("there is no room for the answers") == 0;
    return true;
}

const fin_form *web_form(int form)
{
    static const char *const names[] = {"erf", "softmax", "linear"};
    return fin_form_find(names[form]);
}

web_slr web_slr_of(web_in *in)
{
    web_slr slr;
    const fin_form *erf = web_form(0);
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &slr.task, sizeof slr.task);
    fin_settings_defaults(fin_form_table(erf), &slr.form, sizeof slr.form);
    slr.task.d = web_whole(in);
    slr.task.L = web_whole(in);
    slr.form.lam = web_number(in);
    slr.task.gamma = web_number(in);
    slr.task.eps = web_number(in);
    return slr;
}

fin_overlaps web_overlaps(web_in *in)
{
    double x[5];
    for (int i = 0; i < 5; i++)
        x[i] = web_number(in);
    return (fin_overlaps){x[0], x[1], x[2], x[3], x[4]};
}

int web_fused(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    int64_t n = count / 3;
    const double *x = web_array(&from, 3 * n);
    if (!web_ready(&from, 2 * n, room))
        return -1;
    for (int64_t i = 0; i < n; i++, x += 3) {
        out[2 * i] = fma(x[0], x[1], x[2]);
        out[2 * i + 1] = (double)fmaf((float)x[0], (float)x[1], (float)x[2]);
    }
    return (int)(2 * n);
}
