import { tryParseDuration } from '@thv/kernel/duration'
import { keyPath, type Place, type ProblemList } from './config-problem.ts'
import { didYouMean } from './nearest-key.ts'
import { unofferedKey } from './unoffered-keys.ts'
import type { Tree, TreeEntry, TreeList, TreeMap, TreeScalar } from './yaml-tree.ts'

/** The supported subset of JSON Schema, and four keywords of our own. */
export interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly const?: unknown
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly patternMessage?: string
  readonly format?: string
  readonly minDuration?: string
  readonly maxDuration?: string
}

/** Compares a tree with a schema and gives its plain value, defaults filled in. Everything that does not fit becomes a problem. */
export function checkShape(tree: TreeMap, schema: Schema, problems: ProblemList): unknown {
  return check({ tree, schema, path: '', general: '', place: tree.place }, problems)
}

interface Spot {
  readonly tree: Tree
  readonly schema: Schema
  readonly path: string
  /** The path with `[]` instead of numbers. */
  readonly general: string
  readonly place: Place
}

function check(spot: Spot, problems: ProblemList): unknown {
  const { tree, schema } = spot
  if (schema.anyOf) return checkChoice(spot, schema.anyOf, problems)
  if (schema.type === 'object') return tree.kind === 'map' ? checkMap(spot, tree, problems) : wrongKind(spot, 'a mapping', problems)
  if (schema.type === 'array') return tree.kind === 'list' ? checkList(spot, tree, problems) : wrongKind(spot, 'a list', problems)
  if (tree.kind !== 'scalar') return wrongKind(spot, SCALARS[schema.type ?? ''] ?? 'a value', problems)
  return checkScalar(spot, tree, problems)
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
}

function checkMap(spot: Spot, tree: TreeMap, problems: ProblemList): unknown {
  const { schema, path, general } = spot
  const properties = schema.properties ?? {}
  const values: [string, unknown][] = []
  for (const [key, entry] of tree.entries) {
    const below = { path: keyPath(path, key), general: keyPath(general, key) }
    const known = Object.hasOwn(properties, key) ? properties[key] : Object.values(schema.patternProperties ?? {})[0]
    if (known) values.push([key, check({ tree: entry.value, schema: known, ...below, place: placeOfEntry(entry) }, problems)])
    else {
      values.push([key, null])
      problems.add(entry.place, below.path, unofferedKey(below.general) ?? unknownKey(key, Object.keys(properties)))
    }
  }
  for (const key of schema.required ?? []) {
    const missing = properties[key]
    if (tree.entries.has(key) || !missing) continue
    const below = { path: keyPath(path, key), general: keyPath(general, key) }
    if (missing.default === undefined) problems.add(spot.place, below.path, 'is required')
    else values.push([key, defaultOf(missing, { ...below, place: spot.place }, problems)])
  }
  return Object.fromEntries(values)
}

function unknownKey(key: string, known: readonly string[]): string {
  if (key === '<<') return 'merge keys are not used here: write the keys out'
  if (known.length === 0) return 'is not known: nothing belongs here'
  return `is not known${didYouMean(key, known) || `; known are ${known.join(', ')}`}`
}

/** A default of {} has defaults below it. */
function defaultOf(schema: Schema, where: Pick<Spot, 'path' | 'general' | 'place'>, problems: ProblemList): unknown {
  if (schema.type !== 'object') return schema.default
  const tree: TreeMap = { kind: 'map', place: where.place, entries: new Map() }
  return check({ tree, schema, ...where }, problems)
}

function checkList(spot: Spot, tree: TreeList, problems: ProblemList): unknown {
  const { schema, path, general } = spot
  if (tree.items.length < (schema.minItems ?? 0)) problems.add(spot.place, path, 'must not be empty')
  return tree.items.map((item, index) =>
    check({ tree: item, schema: schema.items ?? {}, path: `${path}[${index}]`, general: `${general}[]`, place: item.place }, problems),
  )
}

/** Either one of several words, or (claims) a text or a list of texts. */
function checkChoice(spot: Spot, options: readonly Schema[], problems: ProblemList): unknown {
  const { tree, path, place } = spot
  const words = options.map((option) => option.const).filter((word) => typeof word === 'string')
  if (words.length === 0) {
    const kind = tree.kind === 'list' ? 'array' : 'string'
    const option = options.find(({ type }) => type === kind)
    const isClaim = tree.kind === 'list' ? tree.items.every(isText) : isText(tree)
    if (option && isClaim) return check({ ...spot, schema: option }, problems)
    problems.add(place, path, `must be a string or a list of strings, not ${kindOf(tree)}`)
    return plain(tree)
  }
  if (tree.kind === 'scalar' && words.includes(String(tree.value))) return tree.value
  const choice = `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
  if (tree.kind === 'scalar' && typeof tree.value === 'string' && !tree.variables) {
    const mode = path === 'auth.mode'
    problems.add(place, path, mode ? invalidMode(tree.value) : `${choice}, not ${shown(tree.value)}${didYouMean(tree.value, words)}`)
  } else problems.add(place, path, choice)
  return plain(tree)
}

/** The words of ToolHive (Go), which people may search for. */
function invalidMode(value: string): string {
  return `invalid auth.mode: ${value.slice(0, 40)} (must be 'anonymous' or 'oauth')`
}

function checkScalar(spot: Spot, tree: TreeScalar, problems: ProblemList): unknown {
  const { schema, path, place } = spot
  const value = tree.variables ? coerced(String(tree.value), schema.type) : tree.value
  const problem = value === null ? emptyText(schema) : scalarProblem(value, schema, tree.variables === undefined)
  if (problem) problems.add(place, path, problem)
  return value
}

function emptyText(schema: Schema): string {
  return `must be ${SCALARS[schema.type ?? ''] ?? 'a value'}, and is empty`
}

/** A text out of the environment is taken as the type that is wanted. */
function coerced(text: string, type: string | undefined): string | number | boolean {
  if (type === 'boolean' && /^(true|false)$/i.test(text.trim())) return text.trim().toLowerCase() === 'true'
  if ((type === 'integer' || type === 'number') && /^[+-]?\d+(\.\d+)?$/.test(text.trim())) return Number(text)
  return text
}

function scalarProblem(value: string | number | boolean, schema: Schema, mayShow: boolean): string | undefined {
  const wanted = SCALARS[schema.type ?? ''] ?? 'a value'
  const isNumber = schema.type === 'integer' || schema.type === 'number'
  if (isNumber ? typeof value !== 'number' : typeof value !== schema.type) {
    if (schema.format === 'go-duration') return A_DURATION
    if (schema.type === 'string') return `must be ${wanted}: put it in quotes`
    return `must be ${wanted}${mayShow && typeof value === 'string' ? `, not ${shown(value)}` : ''}`
  }
  if (typeof value === 'number') return numberProblem(value, schema)
  return typeof value === 'string' ? textProblem(value, schema) : undefined
}

const A_DURATION = 'must be a duration such as 30s, 15m or 1h30m'

function numberProblem(value: number, { type, minimum = -Infinity, maximum = Infinity }: Schema): string | undefined {
  if (type === 'integer' ? !Number.isSafeInteger(value) : !Number.isFinite(value)) return `must be ${SCALARS[type ?? '']}`
  if (value >= minimum && value <= maximum) return undefined
  return maximum === Infinity ? `must be at least ${minimum}` : `must be from ${minimum} to ${maximum}`
}

function textProblem(
  value: string,
  { minLength = 0, pattern, patternMessage, format, minDuration, maxDuration }: Schema,
): string | undefined {
  if (value.length < minLength) return 'must not be empty'
  if (value.includes('\0')) return 'must not contain a NUL'
  if (pattern !== undefined && !new RegExp(pattern).test(value)) return patternMessage ?? `must match ${pattern}`
  if (format !== 'go-duration') return undefined
  const ms = tryParseDuration(value)
  if (ms === undefined) return A_DURATION
  if (minDuration !== undefined && ms < (tryParseDuration(minDuration) ?? 0)) return `must be at least ${minDuration}`
  return maxDuration !== undefined && ms > (tryParseDuration(maxDuration) ?? Infinity) ? `must be at most ${maxDuration}` : undefined
}

function wrongKind(spot: Spot, wanted: string, problems: ProblemList): unknown {
  const { tree, schema, path, place } = spot
  const isEmpty = tree.kind === 'scalar' && tree.value === null
  const hint = isEmpty ? `, and is empty${schema.type === 'object' ? '; write {} for an empty one' : ''}` : `, not ${kindOf(tree)}`
  problems.add(place, path, `must be ${wanted}${hint}`)
  return plain(tree)
}

function kindOf(tree: Tree): string {
  if (tree.kind === 'map') return 'a mapping'
  if (tree.kind === 'list') return tree.items.every(isText) ? 'a list' : 'a list with something else in it'
  if (tree.value === null) return 'nothing'
  return typeof tree.value === 'string' ? 'a text' : typeof tree.value === 'number' ? 'a number' : 'true or false'
}

function isText(tree: Tree): boolean {
  return tree.kind === 'scalar' && typeof tree.value === 'string'
}

function plain(tree: Tree): unknown {
  if (tree.kind === 'scalar') return tree.value
  if (tree.kind === 'list') return tree.items.map(plain)
  return Object.fromEntries([...tree.entries].map(([key, { value }]) => [key, plain(value)]))
}

/** Of one value the value itself; of what spans lines the key, where people look. */
export function placeOfEntry({ place, value }: TreeEntry): Place {
  return value.kind === 'scalar' && value.value !== null ? value.place : place
}

function shown(text: string): string {
  return JSON.stringify(text.length <= 40 ? text : `${text.slice(0, 40)}…`)
}
