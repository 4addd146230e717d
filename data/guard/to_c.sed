# A text as a C string: `sed -f to_c.sed FILE`
1i\
/* Made by the build. */\
extern const char guard_opencode_js[];\
const char guard_opencode_js[] =
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
$a\
;
