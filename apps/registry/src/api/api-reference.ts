import { type ErrorStatus, statusCodes } from './http/api-error.ts'
import { errorsOf } from './http/openapi.ts'
import { type Route, type Tag, tags } from './http/route.ts'
import { routes } from './routes.ts'

/** docs/reference/registry-api.md, from the routes themselves. */
export function renderApiReference(): string {
  const sections = (Object.keys(tags) as Tag[]).map(
    (tag) => `## ${title(tag)}\n\n${tags[tag]}\n\n${table(routes.filter((route) => route.tag === tag && !ofAll(route)))}`,
  )
  return `# Registry API

Generated from the routes of the registry server; do not edit. The same as OpenAPI 3.1: \`/openapi.json\` and \`/openapi.yaml\` of a running
server, and below each registry.

- Names of servers have a slash, which is written \`%2F\` in paths.
- \`/v0.1/…\`, where clients of the standard look, and \`/registry/v0.1/…\` have the paths of \`${'/registry/{registryName}/v0.1/…'}\` for all
  registries together, with the same answers.
- Query parameters that a path does not know are refused, as are members of a body.
- Filters of the search (\`tag\`, \`registry_type\`, \`transport\`, \`status\`, \`tool\`) are exact. One that is repeated takes any of its values;
  of different ones all must fit. With filters \`q\` may be left out: all that fit then come in the order of names.
- \`updated_since\` gives what is newer than the time, with what was deleted since: in a source, or by a change of which source wins. When a
  source leaves a registry, or is deleted, its servers are gone without a trace; who follows changes reads everything again now and then (an
  \`api\` source does once a day).
- Changes of what is published are decided and made in one step: where somebody else changed the claims meanwhile the answer is 409.
- Reads have an \`ETag\` and take \`If-None-Match\`; gzip for clients that take it.
- \`/health\`, \`/readiness\`, \`/version\` and \`/metrics\` are on the internal address, the first three also on the public one if configured.
- \`/status/sources\` is on the internal address only: per source of the configuration its phase, attempts, times, counts, hash and message, and
  whether the configuration's \`syncRequest\` is done. It shows no entry, takes no change and has an ETag.
- \`/status/images\` is there too: \`synced\`, and hashes of the images that the registries list, with their defaults filled in. For the operator's
  \`enforceServers\`; no name of an entry or image can be read from it.

${sections.join('\n')}
## Errors

Every error is \`{"error": "…", "code": "…", "problems": […]}\`. \`problems\` is there where a body has something wrong with it: all of it,
each with a JSON pointer.

| Status | Code |
|---|---|
${(Object.entries(statusCodes) as unknown as [ErrorStatus, string][]).map(([status, code]) => `| ${status} | ${[code, ...(MORE_CODES[status] ?? [])].map((one) => `\`${one}\``).join(', ')} |`).join('\n')}
`
}

/** Listed once, for a single registry. */
function ofAll({ path }: Route): boolean {
  return path.startsWith('/registry/v0.1') || path.startsWith('/v0.1')
}

/** More exact ones than that of the status. */
const MORE_CODES: Partial<Record<ErrorStatus, readonly string[]>> = {
  401: ['invalid_request', 'invalid_token'],
  409: ['version_exists'],
  503: ['temporarily_unavailable'],
}

function table(rows: readonly Route[]): string {
  const lines = rows.map(
    (route) => `| \`${route.method} ${route.path}\` | ${route.summary} | ${queryOf(route)} | ${roleOf(route)} | ${statusesOf(route)} |`,
  )
  return `| Path | What | Query | Role | Answers |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
}

function queryOf({ query }: Route): string {
  return query === undefined
    ? ''
    : Object.keys(query.properties)
        .map((name) => `\`${name}\``)
        .join(', ')
}

function roleOf({ access }: Route): string {
  return access === 'nobody' ? 'open to all' : access === undefined ? '' : `\`${access}\``
}

function statusesOf(route: Route): string {
  return [...route.answers.map(({ status }) => status), ...errorsOf(route)].join(', ')
}

function title(tag: Tag): string {
  return `${tag[0]?.toUpperCase()}${tag.slice(1)}`
}
