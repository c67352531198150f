import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { LineCounter, parseDocument } from 'yaml'
import { isRecord } from '../client/response-body.ts'

const MAX_BYTES = 4 << 20

/** One kubeconfig file, checked in its outline; the fields of an entry are checked when it is used. */
export interface KubeconfigFile {
  readonly path: string
  readonly currentContext: string | undefined
  readonly clusters: ReadonlyMap<string, Fields>
  readonly users: ReadonlyMap<string, Fields>
  readonly contexts: ReadonlyMap<string, Fields>
}

/** The mapping of one entry, with readers whose errors name file and field, and never a value. */
export interface Fields {
  /** The kubeconfig they stand in. */
  readonly file: string
  has(name: string): boolean
  /** As it is, unchecked. */
  value(name: string): unknown
  /** Undefined when absent, null or empty, which all mean the same in a kubeconfig. */
  string(name: string): string | undefined
  boolean(name: string): boolean
  /** Empty when absent. */
  strings(name: string): string[]
  /** A list of mappings; empty when absent. */
  list(name: string): Fields[]
  /** A mapping; undefined when absent. */
  fields(name: string): Fields | undefined
  /** A path in the file, made absolute: relative ones are relative to the kubeconfig they stand in. */
  path(name: string): string | undefined
  invalid(name: string, problem: string, cause?: unknown): ThvError
}

/** Undefined when the file does not exist. */
export async function readKubeconfigFile(path: string): Promise<KubeconfigFile | undefined> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw invalid(path, 'file', { problem: 'cannot be read', cause })
  })
  return text === undefined ? undefined : parseKubeconfig(path, text)
}

export function parseKubeconfig(path: string, text: string): KubeconfigFile {
  if (Buffer.byteLength(text) > MAX_BYTES) throw invalid(path, 'file', { problem: `larger than ${MAX_BYTES} bytes` })
  const root = parseYaml(path, text) ?? {}
  if (!isRecord(root)) throw invalid(path, 'file', { problem: 'not a mapping' })
  const fields = fieldsOf(path, '', root)
  const kind = fields.string('kind')
  if (kind !== undefined && kind !== 'Config') throw fields.invalid('kind', 'must be Config')
  return {
    path,
    currentContext: fields.string('current-context'),
    clusters: entriesOf(path, root, { list: 'clusters', inner: 'cluster' }),
    users: entriesOf(path, root, { list: 'users', inner: 'user' }),
    contexts: entriesOf(path, root, { list: 'contexts', inner: 'context' }),
  }
}

/** Of the parser's errors only code and line are kept: their text and excerpt may quote a token. */
function parseYaml(path: string, text: string): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false })
  const error = document.errors[0]
  if (error) throw invalid(path, `line ${lineCounter.linePos(error.pos[0]).line}`, { problem: `not YAML (${error.code})` })
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch {
    throw invalid(path, 'file', { problem: 'its YAML aliases cannot be resolved' })
  }
}

function entriesOf(path: string, root: Record<string, unknown>, names: { list: string; inner: string }): Map<string, Fields> {
  const list = own(root, names.list) ?? []
  if (!Array.isArray(list)) throw invalid(path, names.list, { problem: 'must be a list' })
  const entries = new Map<string, Fields>()
  for (const [index, entry] of list.entries()) {
    const at = `${names.list}[${index}]`
    if (!isRecord(entry)) throw invalid(path, at, { problem: 'must be a mapping' })
    const name = fieldsOf(path, at, entry).string('name')
    if (name === undefined) throw invalid(path, `${at}.name`, { problem: 'is missing' })
    if (entries.has(name)) throw invalid(path, `${at}.name`, { problem: `${JSON.stringify(name)} stands there twice` })
    const inner = own(entry, names.inner) ?? {}
    const label = `${names.list}[${JSON.stringify(name)}].${names.inner}`
    if (!isRecord(inner)) throw invalid(path, label, { problem: 'must be a mapping' })
    entries.set(name, fieldsOf(path, label, inner))
  }
  return entries
}

function fieldsOf(file: string, at: string, values: Record<string, unknown>): Fields {
  const below = (name: string) => (at === '' ? name : `${at}.${name}`)
  const fields: Fields = {
    file,
    value: (name) => own(values, name),
    has: (name) => (own(values, name) ?? '') !== '',
    string(name) {
      const value = own(values, name) ?? ''
      if (typeof value !== 'string') throw fields.invalid(name, 'must be a string')
      return value === '' ? undefined : value
    },
    boolean(name) {
      const value = own(values, name) ?? false
      if (typeof value !== 'boolean') throw fields.invalid(name, 'must be true or false')
      return value
    },
    strings(name) {
      const value = own(values, name) ?? []
      if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) throw fields.invalid(name, 'must be a list of strings')
      return value
    },
    list(name) {
      const value = own(values, name) ?? []
      if (!Array.isArray(value)) throw fields.invalid(name, 'must be a list')
      return value.map((item, index) => {
        if (!isRecord(item)) throw fields.invalid(`${name}[${index}]`, 'must be a mapping')
        return fieldsOf(file, below(`${name}[${index}]`), item)
      })
    },
    fields(name) {
      const value = own(values, name) ?? undefined
      if (value === undefined) return undefined
      if (!isRecord(value)) throw fields.invalid(name, 'must be a mapping')
      return fieldsOf(file, below(name), value)
    },
    path(name) {
      const value = fields.string(name)
      return value === undefined ? undefined : resolve(dirname(file), value)
    },
    invalid: (name, problem, cause) => invalid(file, below(name), { problem, cause }),
  }
  return fields
}

function own(values: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

function invalid(file: string, field: string, { problem, cause }: { problem: string; cause?: unknown }): ThvError {
  const options = cause === undefined ? {} : { cause }
  return new ThvError('kubeconfig_invalid', `kubeconfig ${file}: ${field}: ${problem}`, { ...options, details: { file, field } })
}
