/* SPDX-License-Identifier: Apache-2.0 */
/* secret/service.c - services whose variables and hosts are known, so that a name is all one has to type */
#include "secret/secret.h"

const struct secret_service secret_services[] = {
	{ "anthropic",
	  { "ANTHROPIC_API_KEY" },
	  { "api.anthropic.com", "console.anthropic.com", "claude.ai", "mcp-proxy.anthropic.com" },
	  { "header" } },
	{ "openai",
	  { "OPENAI_API_KEY", "CODEX_API_KEY" },
	  { "api.openai.com", "openai.com", "chatgpt.com", "www.chatgpt.com" },
	  { "header" } },
	/* Its own documentation puts the key into the query. */
	{ "google",
	  { "GEMINI_API_KEY", "GOOGLE_API_KEY" },
	  { "generativelanguage.googleapis.com", "oauth2.googleapis.com",
	    "aiplatform.googleapis.com", "vertexai.googleapis.com" },
	  { "header", "query" } },
	{ "github",
	  { "GH_TOKEN", "GITHUB_TOKEN" },
	  { "api.github.com", "github.com", "raw.githubusercontent.com", "gist.github.com",
	    "copilot.github.com", "api.githubcopilot.com", "uploads.github.com" },
	  { "header" } },
	{ "cursor",
	  { "CURSOR_API_KEY" },
	  { "api2.cursor.sh", "api3.cursor.sh", "repo42.cursor.sh", "cursor.com" },
	  { "header" } },
	{ "droid",
	  { "FACTORY_API_KEY" },
	  { "api.factory.ai", "app.factory.ai", "relay.factory.ai" },
	  { "header" } },
	{ "kiro",
	  { "KIRO_API_KEY" },
	  { "management.us-east-1.kiro.dev", "runtime.us-east-1.kiro.dev",
	    "q.us-east-1.amazonaws.com", "codewhisperer.us-east-1.amazonaws.com" },
	  { "header" } },
	{ "groq", { "GROQ_API_KEY" }, { "api.groq.com" }, { "header" } },
	{ "mistral", { "MISTRAL_API_KEY" }, { "api.mistral.ai" }, { "header" } },
	{ "nebius",
	  { "NEBIUS_API_KEY" },
	  { "api.studio.nebius.com", "api.tokenfactory.nebius.com" },
	  { "header" } },
	{ "openrouter", { "OPENROUTER_API_KEY" }, { "openrouter.ai" }, { "header" } },
	{ "xai", { "XAI_API_KEY" }, { "api.x.ai" }, { "header" } },
	{ NULL },
};

const struct secret_service *secret_service_find(const char *name)
{
	for (const struct secret_service *s = secret_services; s->name; s++)
		if (str_eq(s->name, name))
			return s;
	return NULL;
}

static void fill(struct secret_list *l, const char *const *v, size_t most)
{
	if (l->n > 0)
		return;
	for (size_t i = 0; i < most && v[i]; i++)
		secret_list_add(l, v[i]);
}

void secret_apply_service(struct secret *s)
{
	const struct secret_service *known = secret_service_find(s->name);
	static const char *const header[] = { "header" };

	if (known) {
		fill(&s->env, known->env, ARRAY_LEN(known->env));
		fill(&s->hosts, known->hosts, ARRAY_LEN(known->hosts));
		fill(&s->places, known->places, ARRAY_LEN(known->places));
	}
	fill(&s->places, header, 1);
}
