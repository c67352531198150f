/** A problem of a document: where, and what is expected there. Neither ever holds a value of the document: it may be a secret. */
export interface Problem {
  /** Such as `scaling_config.session_redis.db`, `cmd_args[2]`; empty for the document itself. */
  readonly path: string
  readonly message: string
}

/** Where a reader puts what it finds. Reading goes on after a problem, so that all are found at once. */
export interface Findings {
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

/** Reads one value. Undefined means that it was of no use, and that a problem says so. */
export interface ValueReader<T> {
  /** For people, after "expects": `a text`, `one of a, b`. */
  readonly expects: string
  read(value: unknown, path: string, findings: Findings): T | undefined
  /** The fields of an object, and how the items of a list or map are read: for the reference. */
  readonly fields?: AnyFieldTable
  readonly items?: ValueReader<unknown>
}

export interface Field<T> {
  readonly reader: ValueReader<T>
  /** One or two sentences for the reference. */
  readonly doc: string
  readonly required?: boolean
  /** Filled in when the document says nothing, or null. */
  readonly default?: T
  /** For the reference, where the default depends on other fields and is filled in by a rule. */
  readonly defaultText?: string
}

/** One field per member of T: a member without an entry, or an entry without a member, does not compile. */
export type FieldTable<T> = { readonly [K in keyof T]-?: Field<Exclude<T[K], undefined>> }

export type AnyFieldTable = Readonly<Record<string, Field<unknown>>>

export interface ReadFieldsOptions {
  /** Also takes keys in other spellings: `JWKSURL` and `jwksUrl` for `jwks_url`. */
  readonly anySpelling?: boolean
  /** Unknown members are problems instead of warnings. */
  readonly rejectUnknown?: boolean
}

/** Reads an object by its table. Unknown members become warnings. Undefined when a member was of no use. */
export function readFields<T>(
  table: FieldTable<T>,
  source: { value: unknown; path: string; findings: Findings },
  options: ReadFieldsOptions = {},
): T | undefined {
  const { value, path, findings } = source
  if (!isJsonObject(value)) {
    findings.problems.push({ path, message: `expects an object, got ${kindOf(value)}` })
    return undefined
  }
  const fields = table as unknown as AnyFieldTable
  const given = membersBySpelling(fields, { value, path, findings }, options)
  const problemsBefore = findings.problems.length
  const result: [string, unknown][] = []
  for (const [key, field] of Object.entries(fields)) {
    const member = given.get(key)
    const memberPath = joinPath(path, key)
    // Go writes null and "" for unset members.
    if (member === undefined || member === null || (member === '' && !field.required)) {
      if (field.required) findings.problems.push({ path: memberPath, message: `is required: expects ${field.reader.expects}` })
      else if (field.default !== undefined) result.push([key, field.default])
      continue
    }
    const read = field.reader.read(member, memberPath, findings)
    if (read !== undefined) result.push([key, read])
  }
  return findings.problems.length > problemsBefore ? undefined : (Object.fromEntries(result) as T)
}

/** Members under their canonical key. Two spellings of one key must agree. */
function membersBySpelling(
  fields: AnyFieldTable,
  { value, path, findings }: { value: Readonly<Record<string, unknown>>; path: string; findings: Findings },
  { anySpelling = false, rejectUnknown = false }: ReadFieldsOptions,
): Map<string, unknown> {
  const canonical = new Map(Object.keys(fields).map((key) => [spellingless(key), key]))
  const given = new Map<string, unknown>()
  for (const [key, member] of Object.entries(value)) {
    const meant = Object.hasOwn(fields, key) ? key : canonical.get(spellingless(key))
    if (meant === undefined) {
      if (rejectUnknown) findings.problems.push({ path: joinPath(path, key), message: 'is not a known field' })
      else findings.warnings.push({ path: joinPath(path, key), message: 'is not a known field and has no effect' })
    } else if (meant !== key && !anySpelling) {
      // Taken for an unknown field, a protection that somebody wanted would be absent without a word.
      findings.problems.push({ path: joinPath(path, key), message: `must be written as ${meant}` })
    } else if (given.has(meant) && JSON.stringify(given.get(meant)) !== JSON.stringify(member)) {
      findings.problems.push({ path: joinPath(path, key), message: `is given in two spellings with different values; keep ${meant}` })
    } else {
      given.set(meant, member)
    }
  }
  return given
}

function spellingless(key: string): string {
  return key.replaceAll('_', '').toLowerCase()
}

export function joinPath(path: string, key: string): string {
  const safe = key.length > MAX_KEY ? `${key.slice(0, MAX_KEY)}…` : key
  return path === '' ? safe : `${path}.${safe}`
}

const MAX_KEY = 100

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The type of the value, without its content. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  if (typeof value === 'number') return 'a number'
  if (typeof value === 'boolean') return 'true or false'
  return typeof value === 'object' ? 'an object' : 'nothing'
}
