import type { Json, JsonObject } from './catalog-entry.ts'
import { defaultNamespace } from './convert-toolhive.ts'
import { isJsonObject, member } from './json-guard.ts'
import type { EntryProblem } from './registry-problem.ts'
import { schemaUrl, schemaVersionOf } from './schema-version.ts'
import { serverExtensions } from './server-extensions.ts'
import { compareCodePoints } from './text.ts'
import { compareVersions } from './version-order.ts'

export type ToolhiveConversion =
  | { readonly ok: true; readonly kind: 'container' | 'remote'; readonly key: string; readonly server: JsonObject }
  | { readonly ok: false; readonly message: string }

/**
 * One checked document → one ToolHive server. That format knows images and remotes only, one of each, so packages of other registries, further remotes,
 * icons and the document's version are lost.
 */
export function toToolhiveServer(document: JsonObject): ToolhiveConversion {
  const packages = objectsOf(document, 'packages').map((pack) => (isSnakeCase(document) ? inCamelCase(pack) : pack))
  const remotes = objectsOf(document, 'remotes')
  const name = textOf(document, 'name')
  const key = toolhiveKey(name)
  const [remote] = remotes
  if (packages.length > 0) {
    const images = packages.filter((pack) => textOf(pack, 'registryType') === 'oci')
    const [image] = images
    if (image === undefined) {
      const types = packages.map((pack) => textOf(pack, 'registryType')).join(' ')
      return { ok: false, message: `server '${name}' has no OCI packages (found: [${types}])` }
    }
    if (images.length > 1)
      return { ok: false, message: `server '${name}' has ${images.length} OCI packages, and ToolHive's format takes one` }
    return { ok: true, kind: 'container', key, server: containerOf(document, image) }
  }
  if (remote !== undefined) return { ok: true, kind: 'remote', key, server: remoteOf(document, remote) }
  return { ok: false, message: `server '${name}' has neither packages nor remotes` }
}

const RENAMED = new Map(
  ['registryType', 'runtimeArguments', 'packageArguments', 'environmentVariables', 'isRequired', 'isSecret'].map((name) => [
    schemaVersionOf(schemaUrl('2025-07-09')).version.field(name),
    name,
  ]),
)

function isSnakeCase(document: JsonObject): boolean {
  return textOf(document, '$schema') === schemaUrl('2025-07-09')
}

/** Known members only: a variable's name is its author's. */
function inCamelCase<T extends Json>(value: T): T {
  if (Array.isArray(value)) return value.map(inCamelCase) as unknown as T
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [RENAMED.get(name) ?? name, inCamelCase(inner)])) as T
}

/** Many documents → one `registry.json`. Of several versions of a name the highest is taken. */
export function convertToToolhiveRegistry(
  documents: readonly JsonObject[],
  lastUpdated: string,
): { readonly registry: JsonObject; readonly problems: readonly EntryProblem[] } {
  const newest = new Map<string, { document: JsonObject; index: number }>()
  for (const [index, document] of documents.entries()) {
    const known = newest.get(textOf(document, 'name'))
    const higher = known === undefined || compareVersions(textOf(document, 'version'), textOf(known.document, 'version')) > 0
    if (higher) newest.set(textOf(document, 'name'), { document, index })
  }
  const sections: Record<'container' | 'remote', [string, JsonObject][]> = { container: [], remote: [] }
  const problems: EntryProblem[] = []
  for (const [name, { document, index }] of newest) {
    const converted = toToolhiveServer(document)
    if (converted.ok) sections[converted.kind].push([converted.key, converted.server])
    else problems.push({ entry: `/${index}`, name, effect: 'dropped', problems: [{ pointer: '', message: converted.message }] })
  }
  const sorted = (pairs: [string, JsonObject][]): JsonObject => Object.fromEntries(pairs.sort(([a], [b]) => compareCodePoints(a, b)))
  const registry = {
    version: '1.0.0',
    last_updated: lastUpdated,
    servers: sorted(sections.container),
    remote_servers: sorted(sections.remote),
  }
  return { registry, problems }
}

/** The short key where reading it back gives the same name, else the whole name. */
function toolhiveKey(name: string): string {
  const prefix = `${defaultNamespace}/`
  const short = name.slice(prefix.length)
  return name.startsWith(prefix) && /^[a-z0-9][a-z0-9-]+[a-z0-9]$/.test(short) ? short : name
}

function containerOf(document: JsonObject, image: JsonObject): JsonObject {
  const identifier = textOf(image, 'identifier')
  const extensions = serverExtensions(document, identifier) ?? {}
  const transport = objectOf(image, 'transport')
  const args = objectsOf(image, 'packageArguments').flatMap((argument) =>
    [textOf(argument, 'name'), textOf(argument, 'value')].filter(Boolean),
  )
  const variables = [
    ...objectsOf(image, 'environmentVariables').map(variableOf),
    ...objectsOf(image, 'runtimeArguments').flatMap(dockerVariable),
  ]
  return compact({
    ...commonOf(document, extensions),
    image: identifier,
    transport: textOf(transport, 'type') || 'stdio',
    target_port: portOf(textOf(transport, 'url')),
    permissions: member(extensions, 'permissions'),
    env_vars: variables.length > 0 ? variables : undefined,
    args: args.length > 0 ? args : member(extensions, 'args'),
    docker_tags: member(extensions, 'docker_tags'),
    provenance: member(extensions, 'provenance'),
  })
}

function remoteOf(document: JsonObject, remote: JsonObject): JsonObject {
  const url = textOf(remote, 'url')
  const extensions = serverExtensions(document, url) ?? {}
  const headers = objectsOf(remote, 'headers').map(variableOf)
  return compact({
    ...commonOf(document, extensions),
    url,
    transport: textOf(remote, 'type'),
    headers: headers.length > 0 ? headers : undefined,
    oauth_config: member(extensions, 'oauth_config'),
    env_vars: member(extensions, 'env_vars'),
  })
}

const SAME = ['tags', 'tool_definitions', 'metadata', 'custom_metadata', 'proxy_port', 'stateless']

function commonOf(document: JsonObject, extensions: JsonObject): Record<string, Json | undefined> {
  const status = textOf(extensions, 'status') || 'Active'
  const { description, overview } = describe(textOf(document, 'description'), textOf(extensions, 'overview'))
  return {
    title: member(document, 'title'),
    description,
    overview: overview || undefined,
    tier: textOf(extensions, 'tier') || 'Community',
    status: status.charAt(0).toUpperCase() + status.slice(1),
    tools: member(extensions, 'tools') ?? [],
    repository_url: textOf(objectOf(document, 'repository'), 'url') || undefined,
    ...Object.fromEntries(SAME.map((name) => [name, member(extensions, name)])),
  }
}

const MAX_DESCRIPTION = 500

/** Undoes the cut of the other converter: the overview begins with the full text, up to its first blank line. */
function describe(description: string, overview: string): { description: string; overview: string } {
  const stem = description.slice(0, -1)
  if (!description.endsWith('…') || stem === '' || !overview.startsWith(stem)) return { description, overview }
  const end = overview.indexOf('\n\n')
  const full = end === -1 ? overview : overview.slice(0, end)
  // Too long for this format, or less than what it was cut from: leave both as they are.
  if (full.length > MAX_DESCRIPTION || full.length < stem.length) return { description, overview }
  return { description: full, overview: end === -1 ? '' : overview.slice(end + 2) }
}

function variableOf(input: JsonObject): JsonObject {
  const choices = member(input, 'choices')
  return compact({
    name: textOf(input, 'name'),
    description: textOf(input, 'description'),
    required: member(input, 'isRequired') === true,
    secret: member(input, 'isSecret') === true || undefined,
    default: textOf(input, 'default') || textOf(input, 'value') || undefined,
    choices: Array.isArray(choices) && choices.length > 0 ? choices : undefined,
  })
}

/** `-e KEY=value` and `--env KEY={variable}` of the container's command line are environment variables here. */
function dockerVariable(argument: JsonObject): readonly JsonObject[] {
  const isEnv = textOf(argument, 'type') === 'named' && ['-e', '--env'].includes(textOf(argument, 'name'))
  const parts = isEnv ? /^([^=]+)=([\s\S]*)$/.exec(textOf(argument, 'value')) : null
  if (parts === null) return []
  const [, name = '', value = ''] = parts
  const variableName = /^\{([^{}]+)\}$/.exec(value)?.[1]
  const variable = variableName === undefined ? undefined : objectOf(objectOf(argument, 'variables'), variableName)
  const own = member(argument, 'isRequired')
  const required = typeof own === 'boolean' ? own : member(variable ?? {}, 'isRequired') === true
  return [
    compact({
      name,
      description: textOf(variable ?? {}, 'description') || textOf(argument, 'description'),
      required,
      secret: member(variable ?? {}, 'isSecret') === true || member(argument, 'isSecret') === true || undefined,
      default: variable === undefined ? value || undefined : textOf(variable, 'default') || undefined,
    }),
  ]
}

function portOf(url: string): number | undefined {
  const port = Number(URL.parse(url)?.port ?? '')
  return port > 0 ? port : undefined
}

function textOf(object: JsonObject, name: string): string {
  const value = member(object, name)
  return typeof value === 'string' ? value : ''
}

function objectOf(object: JsonObject, name: string): JsonObject {
  const value = member(object, name)
  return isJsonObject(value) ? value : {}
}

function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const value = member(object, name)
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function compact(members: Record<string, Json | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter((pair): pair is [string, Json] => pair[1] !== undefined))
}
