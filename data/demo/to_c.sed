# A text as a C string: `sed -f to_c.sed FILE`
1i\
/* Made by the build. */\
extern const char demo_agent[];\
const char demo_agent[] =
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
$a\
;
