import type { DocumentProblem, Json, JsonObject } from './catalog-entry.ts'
import { isJsonObject, member } from './json-guard.ts'
import { readObject } from './object-reader.ts'
import { createProblems, pointerTo } from './problems.ts'
import type { EntryProblem } from './registry-problem.ts'
import { checkServerDocument } from './server-document.ts'
import { checkPublisherBlocks } from './server-extensions.ts'
import { timestampProblem } from './text.ts'

const upstreamRegistrySchemaUrl =
  'https://raw.githubusercontent.com/stacklok/toolhive-core/main/registry/types/data/upstream-registry.schema.json'

export interface UpstreamRegistry {
  readonly version?: string
  readonly lastUpdated?: string
  /** In the file's order; no two have the same name and version. */
  readonly documents: readonly JsonObject[]
  readonly problems: readonly EntryProblem[]
}

export interface UpstreamOptions {
  /** Asks for `version` and `meta.last_updated`, and drops a server whose ToolHive extensions break their schema. */
  readonly strict?: boolean
}

/** Reads a parsed file in the wrapper format. A bad document is dropped alone and reported with all that is wrong with it. */
export function readUpstreamRegistry(file: unknown, options: UpstreamOptions = {}): UpstreamRegistry {
  const none = (problems: readonly DocumentProblem[]): UpstreamRegistry => ({ documents: [], problems: [fileProblem(problems)] })
  if (!isJsonObject(file as Json)) return none([{ pointer: '', message: 'must be an object' }])
  const object = file as JsonObject
  const head = readHead(object, options.strict ?? false)
  const data = member(object, 'data')
  const servers = isJsonObject(data) ? member(data, 'servers') : undefined
  if (!Array.isArray(servers)) return none([...head.problems, { pointer: '/data/servers', message: 'must be an array' }])

  const documents: JsonObject[] = []
  const problems: EntryProblem[] = head.problems.length > 0 ? [fileProblem(head.problems)] : []
  const seen = new Set<string>()
  for (const [i, value] of servers.entries()) {
    const read = readDocument(value, { strict: options.strict ?? false, seen })
    const about = { entry: pointerTo('/data/servers', i), ...nameOf(value) }
    if (read.document !== undefined) documents.push(read.document)
    if (read.problems.length > 0) {
      problems.push({ ...about, effect: read.document === undefined ? 'dropped' : 'warning', problems: read.problems })
    }
  }
  return { ...head.members, documents, problems }
}

/** The file that others read. The time is the caller's. */
export function writeUpstreamRegistry(documents: readonly JsonObject[], lastUpdated: string): JsonObject {
  return { $schema: upstreamRegistrySchemaUrl, version: '1.0.0', meta: { last_updated: lastUpdated }, data: { servers: documents } }
}

interface Head {
  readonly members: { readonly version?: string; readonly lastUpdated?: string }
  readonly problems: readonly DocumentProblem[]
}

function readHead(file: JsonObject, strict: boolean): Head {
  const problems = createProblems()
  const top = readObject(file, '', problems)
  const check = (text: string): string | undefined => (/^\d+\.\d+\.\d+$/.test(text) ? undefined : 'must be three numbers with dots between')
  const version = top.text('version', strict ? { required: true, check } : {})
  let lastUpdated: string | undefined
  top.child('meta', { required: strict }, (meta) => {
    lastUpdated = meta.text('last_updated', strict ? { required: true, check: timestampProblem } : {})
  })
  return {
    members: { ...(version === undefined ? {} : { version }), ...(lastUpdated === undefined ? {} : { lastUpdated }) },
    problems: problems.list,
  }
}

interface Reading {
  readonly strict: boolean
  readonly seen: Set<string>
}

function readDocument(value: Json, { strict, seen }: Reading): { document?: JsonObject; problems: readonly DocumentProblem[] } {
  const check = checkServerDocument(value, { level: 'schema' })
  if (!check.ok) return { problems: check.problems }
  const { document } = check
  const problems = createProblems()
  checkPublisherBlocks(document, problems)
  if (strict && problems.list.length > 0) return { problems: problems.list }
  const identity = JSON.stringify([document['name'], document['version']])
  if (seen.has(identity)) return { problems: [{ pointer: '/version', message: 'this name and version are already in the file' }] }
  seen.add(identity)
  return { document, problems: problems.list }
}

function nameOf(value: Json): { readonly name?: string } {
  const name = isJsonObject(value) ? member(value, 'name') : undefined
  return typeof name === 'string' ? { name: name.slice(0, 200) } : {}
}

function fileProblem(problems: readonly DocumentProblem[]): EntryProblem {
  return { entry: '', effect: 'warning', problems }
}
