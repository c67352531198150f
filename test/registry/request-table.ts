import { encodeCursor } from '@thv/catalog/snapshot/cursor'
import { checkQuery } from '@thv/catalog/snapshot/list-query'
import type { TSchema } from 'typebox'
import type { Route } from '../../apps/registry/src/api/http/route.ts'
import { type ComponentName, components } from '../../apps/registry/src/api/http/schemas.ts'
import { routes } from '../../apps/registry/src/api/routes.ts'

/** One request. Rows are made in an order and sent in it: later ones see what earlier ones wrote. */
export interface Row {
  readonly operationId: string
  readonly method: string
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** `good`: what the schemas say is right, though it may be missing (404). `bad`: the client's mistake. */
  readonly kind: 'good' | 'bad'
}

/** Requests made from the routes and their schemas: every parameter at its edges and beyond, every body whole and broken. */
export function requestTable(): Row[] {
  return routes.flatMap((route) => [...rowsOf(route)])
}

function* rowsOf(route: Route): Generator<Row> {
  const { operationId, method } = route
  const [whole, ...others] = bodiesOf(route)
  const row = (target: string, kind: Row['kind'], sent: Partial<RequestBody> | undefined = whole): Row => {
    const { body, headers } = sent ?? {}
    return { operationId, method, target, kind, ...(body !== undefined && { body }), ...(headers && { headers }) }
  }
  const required = requiredQuery(route)
  const asked = (target: string) => (required === '' ? target : `${target}?${required}`)
  for (const target of targetsOf(route, PLACES)) yield row(asked(target), 'good')
  if (required !== '') yield row(route.path.replace('{registryName}', 'default'), 'bad')
  for (const target of targetsOf(route, BROKEN_PLACES)) yield row(target, 'bad')
  const [target = route.path] = targetsOf(route, PLACES)
  for (const other of others) yield row(target, other.kind, other)
  for (const [query, kind] of queriesOf(route)) yield row(`${target}?${query}`, kind)
}

type Values = Readonly<Record<string, readonly string[]>>

/** Of what is there and what is not; the first of each is there. */
const PLACES: Values = {
  registryName: ['default', 'readonly', 'missing'],
  serverName: ['com.example%2Fmine', 'io.github.example%2Fweather', 'com.example%2Fgone', 'com.example%2Fmissing'],
  version: ['0.2.0', 'latest', '1.10.0', '1.0.0%2Bbuild.5', '99.0.0'],
  name: ['table', 'catalog', 'own', 'missing'],
  type: ['server'],
}
const ENTRY_NAMES = ['com.example%2Fmine', 'com.example%2Fmissing']
const BROKEN_PLACES: Values = {
  registryName: ['%20', 'a%ffb'],
  serverName: ['no-slash', 'a%2Fb%2Fc', '%2F', '-a%2Fb'],
  version: ['%09', '%zz'],
  name: ['%20', '%'],
  type: ['skill', 'thing'],
}

/** Each parameter through all of its values while the others stay at their first one. */
function targetsOf(route: Route, values: Values): string[] {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const valuesOf = (name: string, from: Values) =>
    name === 'name' && route.path.startsWith('/v1/entries') && from === PLACES ? ENTRY_NAMES : (from[name] ?? [])
  const fill = (varied: string, value: string) =>
    names.reduce((path, name) => path.replace(`{${name}}`, name === varied ? value : (valuesOf(name, PLACES)[0] ?? '')), route.path)
  const targets = names.flatMap((name) => valuesOf(name, values).map((value) => fill(name, value)))
  return names.length === 0 && values === PLACES ? [route.path] : [...new Set(targets)]
}

/** A search needs words or a filter, which no schema of single parameters can say. */
function requiredQuery({ query }: Route): string {
  const words = query !== undefined && 'q' in query.properties ? ['q'] : []
  return [...(query?.required ?? []), ...words].map((name) => `${name}=weather`).join('&')
}

function* queriesOf(route: Route): Generator<[query: string, kind: Row['kind']]> {
  const { query } = route
  const required = requiredQuery(route)
  yield ['unknown_parameter=1', 'bad']
  for (const [name, schema] of Object.entries(query?.properties ?? {})) {
    const others = required.startsWith(`${name}=`) ? '' : required
    const property = schema as Property
    const values = name === 'cursor' ? CURSORS : property.type === 'array' ? arrayValues(name, property) : valuesOf(property)
    for (const [value, kind] of values) yield [[`${name}=${value}`, others].filter(Boolean).join('&'), kind]
  }
}

const first = checkQuery({})
const filter = 'filter' in first ? first.filter : ''
const CURSORS: readonly (readonly [string, Row['kind']])[] = [
  [encodeCursor({ name: 'com.example/new', version: '1.0.0+build.5' }, filter), 'good'],
  [encodeCursor({ name: 'com.example/was-here-once', version: '1' }, filter), 'good'],
  [encodeCursor({ name: 'com.example/new', version: '1.0.0+build.5' }, 'anotherfilter'), 'bad'],
  ['weather', 'bad'],
  ['%00', 'bad'],
  ['e30', 'bad'],
]

interface Property {
  readonly type?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly items?: { readonly enum?: readonly string[]; readonly maxLength?: number }
  readonly maxItems?: number
}

/** Several values of an array go on with `name=`. */
function* arrayValues(name: string, { items = {}, maxItems }: Property): Generator<[string, Row['kind']]> {
  if (items.enum) {
    for (const good of items.enum) yield [good, 'good']
    for (const bad of ['nothing-like-it', items.enum.join(','), items.enum[0]?.toUpperCase() ?? '']) yield [bad, 'bad']
  } else yield* valuesOf(items)
  const repeated = (count: number) =>
    Array(count)
      .fill(items.enum?.[0] ?? 'weather')
      .join(`&${name}=`)
  yield [repeated(2), 'good']
  if (maxItems !== undefined) yield [repeated(maxItems + 1), 'bad']
}

function* valuesOf({ type, format, minimum = 1, maximum = 1, maxLength }: Property): Generator<[string, Row['kind']]> {
  if (type === 'integer') {
    for (const good of [minimum, minimum + 1, maximum]) yield [String(good), 'good']
    for (const bad of [String(minimum - 1), String(maximum + 1), '-7', 'abc', '1.5', '1e3', '%31%00', '1&limit=2']) yield [bad, 'bad']
  } else if (type === 'boolean') {
    for (const good of ['true', 'false']) yield [good, 'good']
    for (const bad of ['yes', '1', 'TRUE']) yield [bad, 'bad']
  } else if (format === 'date-time') {
    for (const good of ['2020-01-01T00:00:00Z', '2999-01-01T00:00:00.123456%2B02:00']) yield [good, 'good']
    for (const bad of ['yesterday', '2020-02-30T00:00:00Z', '2020-01-01', '1577836800']) yield [bad, 'bad']
  } else {
    for (const text of ['weather', '1.0.0', 'latest', 'THE+NEW', '%C2%B0C', '%25_', 'zzz%20nothing']) yield [text, 'good']
    yield ['%ff', 'bad']
    if (maxLength !== undefined) yield ['x'.repeat(maxLength + 1), 'bad']
  }
}

/** Bodies that are right, by the component that a route takes. */
const SAMPLES: Partial<Record<ComponentName, object>> = {
  ServerDetail: {
    name: 'com.example/mine',
    description: 'From the table',
    version: '0.2.0',
    title: 'Table',
    packages: [],
    custom: { kept: true },
  },
  StatusUpdateRequest: { status: 'deprecated', statusMessage: 'By the table' },
  SourceCreateRequest: {
    file: { url: 'https://registry.example.com/registry.json' },
    syncPolicy: { interval: '1h' },
    filter: { names: { include: ['a*'] } },
  },
  RegistryCreateRequest: { sources: ['own', 'catalog'], claims: { team: ['a', 'b'] } },
  PublishRequest: { server: { name: 'com.example/table', description: 'From the table', version: '1.0.0' } },
  ClaimsBody: { claims: { team: 'a' } },
}

type RequestBody = Pick<Row, 'body' | 'headers' | 'kind'>

function bodiesOf(route: Route): RequestBody[] {
  if (route.body === undefined) return [{ kind: 'good' }]
  const name = String((route.body as { $ref?: string }).$ref)
    .split('/')
    .at(-1) as ComponentName
  const sample = SAMPLES[name]
  if (sample === undefined) throw new Error(`no sample of a ${name}`)
  const good = JSON.stringify(sample)
  const bad = (body: string, headers?: Row['headers']): RequestBody => ({ body, kind: 'bad', ...(headers && { headers }) })
  return [
    { body: good, kind: 'good' },
    ...brokenMembers(components[name], sample).map((value) => bad(JSON.stringify(value))),
    bad(good.slice(0, -1)),
    bad(''),
    bad('[]'),
    bad('null'),
    bad(good, { 'content-type': 'text/plain' }),
    bad(`${good.slice(0, -1)},${good.slice(1)}`),
  ]
}

/** Without each member that is required, and with each of another type. */
function brokenMembers(schema: TSchema, sample: object): object[] {
  const {
    required = [],
    properties = {},
    additionalProperties,
  } = schema as {
    required?: readonly string[]
    properties?: Readonly<Record<string, unknown>>
    additionalProperties?: boolean
  }
  const without = required.map((name) => Object.fromEntries(Object.entries(sample).filter(([member]) => member !== name)))
  const wrong = Object.keys(properties).map((name) => ({ ...sample, [name]: 17 }))
  return [...without, ...wrong, ...(additionalProperties === false ? [{ ...sample, surprise: true }] : [])]
}
