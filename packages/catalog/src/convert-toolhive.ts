import type { DocumentProblem, Json, JsonObject } from './catalog-entry.ts'
import { isJsonObject, member } from './json-guard.ts'
import type { EntryProblem } from './registry-problem.ts'
import { currentSchemaUrl } from './schema-version.ts'
import { checkServerDocument, publisherProvidedKey } from './server-document.ts'
import { extensionsKey } from './server-extensions.ts'
import { compareCodePoints, cutAtWord, unseenProblem, webUrlProblem } from './text.ts'
import type { ToolhiveRegistry, ToolhiveServer } from './toolhive-registry.ts'

/** Part of a source's hash: raise it when the same file converts to other documents. */
export const toolhiveConverterVersion = 1

export const defaultNamespace = 'io.github.stacklok'

export interface ConvertedRegistry {
  /** By name (code point); each passes the schema, no two have the same name. */
  readonly documents: readonly JsonObject[]
  readonly problems: readonly EntryProblem[]
}

export interface ConvertOptions {
  /** The upstream format has no groups. Without this, servers that are only members of a group are left out. */
  readonly includeGrouped?: boolean
}

/** ToolHive's registry → `server.json` documents. A server that does not convert is dropped alone; all the file's problems come along. */
export function convertToolhiveRegistry(registry: ToolhiveRegistry, options: ConvertOptions = {}): ConvertedRegistry {
  const byName = new Map<string, JsonObject>()
  const problems: EntryProblem[] = [...registry.problems]
  for (const entry of registry.servers) {
    if (entry.group !== undefined && !options.includeGrouped) continue
    const { document, warnings } = toServerDocument(entry)
    const about = { entry: entry.pointer, name: entry.key }
    const check = checkServerDocument(document, { level: 'schema' })
    const name = String(document['name'])
    if (!check.ok) problems.push({ ...about, effect: 'dropped', problems: check.problems })
    else if (byName.has(name))
      problems.push({ ...about, effect: 'dropped', problems: [{ pointer: '/name', message: `another entry is already ${name}` }] })
    else {
      byName.set(name, document)
      if (warnings.length > 0) problems.push({ ...about, effect: 'warning', problems: warnings })
    }
  }
  const documents = [...byName].sort(([a], [b]) => compareCodePoints(a, b)).map(([, document]) => document)
  return { documents, problems }
}

/** One server, as read by `readToolhiveRegistry`. Warnings say what was repaired; pointers go from the ToolHive entry. */
function toServerDocument(entry: ToolhiveServer): { readonly document: JsonObject; readonly warnings: readonly DocumentProblem[] } {
  const { server } = entry
  const warnings: DocumentProblem[] = []
  const name = documentName(entry)
  const { description, overview } = describe(entry, warnings)
  const title = titleOf(server, warnings)
  const document = compact({
    $schema: currentSchemaUrl,
    name,
    title: title === '' ? undefined : cutAtWord(title, 100),
    description,
    repository: repositoryOf(server, warnings),
    version: '1.0.0',
    packages: entry.kind === 'container' ? [packageOf(server)] : undefined,
    remotes: entry.kind === 'remote' ? [remoteOf(server)] : undefined,
    _meta: {
      [publisherProvidedKey]: {
        [extensionsKey]: Object.fromEntries([[addressOf(entry), extensionsOf(entry, overview)]]),
      },
    },
  })
  return { document, warnings }
}

function titleOf(server: JsonObject, warnings: DocumentProblem[]): string {
  const title = textOf(server, 'title').trim()
  const problem = unseenProblem(title)
  if (problem === undefined) return title
  warnings.push({ pointer: '/title', message: `${problem}: the title is left out` })
  return ''
}

function documentName({ server, key }: ToolhiveServer): string {
  const name = textOf(server, 'name') || key
  return name.includes('/') ? name : `${defaultNamespace}/${name}`
}

/** The schema takes 100 characters; the full text goes on living as (the beginning of) the overview. */
function describe(entry: ToolhiveServer, warnings: DocumentProblem[]): { description: string; overview: string } {
  const overview = textOf(entry.server, 'overview')
  const full = textOf(entry.server, 'description').trim()
  if (full === '') {
    const made = cutAtWord(`MCP server ${textOf(entry.server, 'name') || entry.key}`, 100)
    warnings.push({ pointer: '/description', message: `is missing: ${JSON.stringify(made)} is shown` })
    return { description: made, overview }
  }
  const description = cutAtWord(full, 100)
  if (description === full || overview.includes(full)) return { description, overview }
  return { description, overview: overview === '' ? full : `${full}\n\n${overview}` }
}

function repositoryOf(server: JsonObject, warnings: DocumentProblem[]): JsonObject | undefined {
  const url = textOf(server, 'repository_url')
  if (url === '') return undefined
  const problem = webUrlProblem(url)
  if (problem !== undefined) {
    warnings.push({ pointer: '/repository_url', message: `${problem}: the repository is left out` })
    return undefined
  }
  return { url, source: /^https?:\/\/(?:www\.)?gitlab\.com\//.test(url) ? 'gitlab' : 'github' }
}

function packageOf(server: JsonObject): JsonObject {
  const type = textOf(server, 'transport') || 'stdio'
  const port = member(server, 'target_port')
  const url = typeof port === 'number' ? `http://localhost:${port}` : 'http://localhost'
  return compact({
    registryType: 'oci',
    identifier: textOf(server, 'image'),
    transport: type === 'stdio' ? { type } : { type, url },
    environmentVariables: inputsOf(server, 'env_vars'),
  })
}

function remoteOf(server: JsonObject): JsonObject {
  return compact({
    type: textOf(server, 'transport') || 'streamable-http',
    url: textOf(server, 'url'),
    headers: inputsOf(server, 'headers'),
  })
}

function inputsOf(server: JsonObject, field: string): readonly JsonObject[] | undefined {
  const inputs = listOf(server, field).filter(isJsonObject)
  if (inputs.length === 0) return undefined
  return inputs.map((input) => {
    const fallback = member(input, 'default')
    const choices = listOf(input, 'choices')
    return compact({
      name: textOf(input, 'name'),
      description: textOf(input, 'description') || undefined,
      isRequired: member(input, 'required') === true || undefined,
      isSecret: member(input, 'secret') === true || undefined,
      default: fallback === undefined || fallback === null || fallback === '' ? undefined : String(fallback),
      choices: choices.length > 0 ? choices : undefined,
    })
  })
}

const SHARED = ['tool_definitions', 'metadata', 'custom_metadata']
const CONTAINER = [...SHARED, 'permissions', 'args', 'provenance', 'docker_tags', 'proxy_port', 'stateless']
const REMOTE = [...SHARED, 'oauth_config', 'env_vars', 'proxy_port', 'stateless']

function extensionsOf({ kind, server }: ToolhiveServer, overview: string): JsonObject {
  const copied = (kind === 'container' ? CONTAINER : REMOTE).map((name) => [name, member(server, name)] as const)
  return compact({
    status: textOf(server, 'status') || 'active',
    tier: member(server, 'tier'),
    tools: member(server, 'tools'),
    tags: member(server, 'tags'),
    overview: overview || undefined,
    ...Object.fromEntries(copied),
  })
}

function addressOf({ kind, server }: ToolhiveServer): string {
  return textOf(server, kind === 'container' ? 'image' : 'url')
}

function textOf(object: JsonObject, name: string): string {
  const value = member(object, name)
  return typeof value === 'string' ? value : ''
}

function listOf(object: JsonObject, name: string): readonly Json[] {
  const value = member(object, name)
  return Array.isArray(value) ? value : []
}

function compact(members: Record<string, Json | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter((pair): pair is [string, Json] => pair[1] !== undefined))
}
