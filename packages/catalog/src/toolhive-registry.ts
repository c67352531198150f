import type { DocumentProblem, Json, JsonObject } from './catalog-entry.ts'
import { guardJson, isJsonObject, member } from './json-guard.ts'
import { readObject } from './object-reader.ts'
import { createProblems, pointerTo } from './problems.ts'
import type { EntryProblem } from './registry-problem.ts'
import { compareCodePoints, timestampProblem } from './text.ts'
import { checkToolhiveServer } from './toolhive-server.ts'

/** One server of a ToolHive file, its members as they were written. */
export interface ToolhiveServer {
  readonly kind: 'container' | 'remote'
  /** The key it stood under; in a file that lists its servers, its name. */
  readonly key: string
  readonly server: JsonObject
  /** The group it belongs to: then it is not listed by itself. */
  readonly group?: string
  /** RFC 6901, from the file. */
  readonly pointer: string
}

export interface ToolhiveRegistry {
  readonly version?: string
  readonly lastUpdated?: string
  /** By key (code point), containers before remotes; then those of groups. */
  readonly servers: readonly ToolhiveServer[]
  readonly problems: readonly EntryProblem[]
}

export interface ToolhiveOptions {
  /** The full schema of the format. Without it an entry needs a name and `image` or `url`, and right types. */
  readonly strict?: boolean
}

/** Reads a parsed `registry.json`. A bad entry is dropped alone; a file that is none at all gives no entries and one problem. */
export function readToolhiveRegistry(file: unknown, options: ToolhiveOptions = {}): ToolhiveRegistry {
  if (!isObject(file)) return { servers: [], problems: [fileProblem([{ pointer: '', message: 'must be an object' }])] }
  const strict = options.strict ?? false
  const whole = createProblems()
  const top = readObject(headOf(file), '', whole)
  const version = top.text('version', { required: strict, check: strict ? versionProblem : undefined })
  const lastUpdated = top.text('last_updated', { required: strict, check: strict ? timestampProblem : undefined })
  const collected = collect(file, { strict, pointer: '', group: undefined })
  const groups = member(file, 'groups')
  if (groups !== undefined && !Array.isArray(groups)) whole.add('/groups', 'must be an array')
  if (!('servers' in collected.found) && (strict || !('remote_servers' in collected.found))) whole.add('/servers', 'is required')

  const grouped = (Array.isArray(groups) ? groups : []).map((group: unknown, i: number) => {
    const pointer = pointerTo('/groups', i)
    const name = isObject(group) ? member(group, 'name') : undefined
    if (isObject(group) && typeof name === 'string' && name !== '') return collect(group, { strict, pointer, group: name })
    return { servers: [], found: {}, problems: [dropped(pointer, [{ pointer: '', message: 'must be an object with a name' }])] }
  })
  const fileProblems = whole.list.length > 0 ? [fileProblem(whole.list)] : []
  return {
    ...(version === undefined ? {} : { version }),
    ...(lastUpdated === undefined ? {} : { lastUpdated }),
    servers: [...collected.servers, ...grouped.flatMap((group) => group.servers)],
    problems: [...fileProblems, ...collected.problems, ...grouped.flatMap((group) => group.problems)],
  }
}

interface Place {
  readonly strict: boolean
  readonly pointer: string
  readonly group: string | undefined
}

interface Collected {
  readonly servers: readonly ToolhiveServer[]
  readonly problems: readonly EntryProblem[]
  readonly found: { servers?: true; remote_servers?: true }
}

function collect(holder: JsonObject, place: Place): Collected {
  const servers: ToolhiveServer[] = []
  const problems: EntryProblem[] = []
  const found: { servers?: true; remote_servers?: true } = {}
  for (const field of ['servers', 'remote_servers'] as const) {
    const pointer = pointerTo(place.pointer, field)
    const value = member(holder, field)
    if (value === undefined) continue
    found[field] = true
    const candidates = candidatesOf(value, place.strict)
    if (candidates === undefined)
      problems.push(dropped(pointer, [{ pointer: '', message: 'must be an object with one member per server' }]))
    for (const { token, key, server } of candidates ?? []) {
      const at = pointerTo(pointer, typeof token === 'string' ? short(token) : token)
      const read = readServer(server, { key, strict: place.strict, remote: field === 'remote_servers' })
      if ('problems' in read) problems.push(dropped(at, read.problems, key === undefined ? undefined : short(key)))
      else servers.push({ ...read, pointer: at, ...(place.group === undefined ? {} : { group: place.group }) })
    }
  }
  return { servers, problems, found }
}

interface Candidate {
  readonly token: string | number
  readonly key: string | undefined
  readonly server: unknown
}

function candidatesOf(value: Json, strict: boolean): readonly Candidate[] | undefined {
  if (Array.isArray(value)) {
    if (strict) return undefined
    return value.map((server: unknown, token: number) => ({ token, key: undefined, server }))
  }
  if (!isJsonObject(value)) return undefined
  const entries = Object.entries(value).sort(([a], [b]) => compareCodePoints(a, b))
  return entries.map(([key, server]) => ({ token: key, key, server }))
}

interface Expected {
  readonly key: string | undefined
  readonly strict: boolean
  readonly remote: boolean
}

type ReadServer = { readonly problems: readonly DocumentProblem[] } | Pick<ToolhiveServer, 'kind' | 'key' | 'server'>

function readServer(value: unknown, expected: Expected): ReadServer {
  const problems = createProblems()
  return guardJson(value, problems) ? readGuardedServer(value, expected) : { problems: problems.list }
}

/** For a value that `guardJson` has let pass. */
export function readGuardedServer(value: Json, expected: Expected): ReadServer {
  const problems = createProblems()
  if (!isJsonObject(value)) return { problems: [{ pointer: '', message: 'must be an object' }] }
  const name = member(value, 'name')
  const key = expected.key ?? (typeof name === 'string' ? name : undefined)
  if (key === undefined || key === '') problems.add('/name', 'is required')
  // Lists of plain files mix both kinds: what has a URL and no image is a remote server.
  const remote = expected.remote || (!expected.strict && member(value, 'image') === undefined && member(value, 'url') !== undefined)
  checkToolhiveServer(readObject(value, '', problems), { key: key ?? '', remote, strict: expected.strict })
  if (problems.list.length > 0) return { problems: problems.list }
  return { kind: remote ? 'remote' : 'container', key: key ?? '', server: value }
}

/** The file itself may be huge; only its small members are looked at here, each entry is guarded alone. */
function headOf(file: JsonObject): JsonObject {
  const names = ['version', 'last_updated'].filter((name) => Object.hasOwn(file, name))
  return Object.fromEntries(names.map((name) => [name, file[name] ?? null]))
}

/** A report stays small whatever the keys are. */
function short(key: string): string {
  return key.length > 200 ? `${key.slice(0, 200)}…` : key
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function dropped(entry: string, problems: readonly DocumentProblem[], name?: string): EntryProblem {
  return { entry, ...(name === undefined ? {} : { name }), effect: 'dropped', problems }
}

function fileProblem(problems: readonly DocumentProblem[]): EntryProblem {
  return { entry: '', effect: 'warning', problems }
}

function versionProblem(text: string): string | undefined {
  return /^\d+\.\d+\.\d+$/.test(text) ? undefined : 'must be three numbers with dots between'
}
