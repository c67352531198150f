import { tryParseDuration } from '@thv/kernel/duration'
import type { DocumentProblem, Json } from '../../catalog-entry.ts'
import type { FilterConfig, IncludeExclude } from '../../filters.ts'
import { guardJson, isJsonObject, member } from '../../json-guard.ts'
import { compileGlob } from '../../name-glob.ts'
import { type ObjectReader, readObject } from '../../object-reader.ts'
import { createProblems, type Problems } from '../../problems.ts'
import { checkKubernetesSource, KUBERNETES_INTERVAL_MS } from './kubernetes-source.ts'
import { addressProblem, commitProblem, outsideProblem, pathInTreeProblem, refNameProblem, serverPathProblem } from './location-rules.ts'
import type { Claims, SourceConfig, SourceFormat } from './source-config.ts'
import { type SourceType, sourceTypes } from './source-types.ts'

export interface SourceCheckOptions {
  /** RFC 6901: where the source stands in what is being read; goes before every pointer. */
  readonly path: string
  /** Through the admin API: documents may be given inline, and files of this machine are not sent anywhere. */
  readonly fromApi: boolean
  /** With `fromApi`: absolute folders below which `file.path` must lie. None without it. */
  readonly allowedFolders?: readonly string[]
}

export type SourceCheck =
  | { readonly ok: true; readonly source: SourceConfig }
  | { readonly ok: false; readonly problems: readonly DocumentProblem[] }

/** One source as people write it → as the server uses it, or everything that is wrong with it. Touches neither disk nor network. */
export function checkSourceConfig(value: unknown, options: SourceCheckOptions): SourceCheck {
  const problems = createProblems()
  if (!guardJson(value, problems, SOURCE_LIMITS)) return failed(problems, options)
  if (!isJsonObject(value)) return { ok: false, problems: [{ pointer: options.path, message: 'must be an object' }] }
  const reader = readObject(value, '', problems)
  known(reader, TOP)
  const name = reader.text('name', { required: true, check: nameProblem })
  const type = typeOf(reader)
  const source = {
    name: name ?? '',
    ...(type === undefined ? {} : { [type]: BLOCKS[type](reader, options) }),
    ...fetching(reader, type),
    ...claimsOf(reader),
  }
  return problems.list.length > 0 ? failed(problems, options) : { ok: true, source }
}

/** Inline documents are part of it; what they hold is bounded when they are read. */
const SOURCE_LIMITS = { maxSize: 16_777_216, maxDepth: 16, maxValues: 50_000, maxString: 8_388_608, maxName: 1_024 }

const TOP = ['name', ...sourceTypes, 'format', 'strict', 'syncPolicy', 'filter', 'claims']

const ALL_TYPES = `${sourceTypes.slice(0, -1).join(', ')} and ${sourceTypes.at(-1)}`

function typeOf(reader: ObjectReader): SourceType | undefined {
  const present = sourceTypes.filter((type) => member(reader.object, type) !== undefined)
  if (present.length > 1) reader.problem('', `must have exactly one of ${ALL_TYPES}, not ${present.join(' and ')}`)
  if (present.length === 0) reader.problem('', `must have exactly one of ${ALL_TYPES}`)
  return present[0]
}

const BLOCKS: Readonly<Record<SourceType, (reader: ObjectReader, options: SourceCheckOptions) => Json | undefined>> = {
  git: (reader, options) =>
    reader.child('git', {}, (git) => {
      known(git, ['repository', 'branch', 'tag', 'commit', 'path', 'auth'])
      const repository = git.text('repository', { required: true, min: 1, check: (url) => addressProblem(url, { userinfo: true }) })
      git.text('branch', { check: refNameProblem })
      git.text('tag', { check: refNameProblem })
      git.text('commit', { check: commitProblem })
      git.text('path', { check: pathInTreeProblem })
      const refs = ['branch', 'tag', 'commit'].filter((ref) => member(git.object, ref) !== undefined)
      if (refs.length > 1) git.problem('', `at most one of branch, tag and commit may be given, not ${refs.join(' and ')}`)
      git.child('auth', {}, (auth) => {
        known(auth, ['username', 'passwordFile'])
        auth.text('username', { required: true, min: 1 })
        auth.text('passwordFile', { required: true, check: (path) => sentFileProblem(path, options) })
        if (URL.parse(repository ?? '')?.username) auth.problem('', 'cannot be given beside a user name in the repository address')
      })
    }),
  api: (reader, options) =>
    reader.child('api', {}, (api) => {
      known(api, ['endpoint', 'timeout', 'headersFile'])
      api.text('endpoint', { required: true, min: 1, check: endpointProblem })
      duration(api, 'timeout', { max: '5m' })
      api.text('headersFile', { check: (path) => sentFileProblem(path, options) })
    }),
  file: (reader, { fromApi, allowedFolders = [] }) =>
    reader.child('file', {}, (file) => {
      known(file, ['path', 'url', 'data', 'timeout'])
      file.text('path', { check: (path) => serverPathProblem(path) ?? (fromApi ? outsideProblem(path, allowedFolders) : undefined) })
      file.text('url', { check: (url) => addressProblem(url, { query: true }) })
      file.text('data', { min: 1 })
      const given = ['path', 'url', 'data'].filter((name) => member(file.object, name) !== undefined)
      const choice = fromApi ? 'path, url and data' : 'path and url'
      if (!fromApi && given.includes('data')) file.problem('data', 'can be given through the admin API only: use path or url')
      else if (given.length !== 1)
        file.problem('', `must have exactly one of ${choice}${given.length > 1 ? `, not ${given.join(' and ')}` : ''}`)
      duration(file, 'timeout', { max: '10m' })
      if (member(file.object, 'timeout') !== undefined && !given.includes('url')) file.problem('timeout', 'goes with url only')
    }),
  kubernetes: (reader, { fromApi }) =>
    reader.child('kubernetes', {}, (kubernetes) => {
      // It reads with the rights of the server's own account.
      if (fromApi) kubernetes.problem('', 'cannot be given through the admin API: configure this source in the file')
      else checkKubernetesSource(kubernetes, known)
    }),
  managed: (reader) => reader.child('managed', {}, (managed) => known(managed, [])),
}

/** Settings of fetching: managed sources have none of it. */
function fetching(reader: ObjectReader, type: SourceType | undefined): Partial<SourceConfig> {
  if (type === 'managed') {
    for (const name of ['syncPolicy', 'filter', 'format', 'strict'])
      if (member(reader.object, name) !== undefined) reader.problem(name, 'has no meaning for a managed source, which is never fetched')
    return {}
  }
  const format = reader.text('format', { oneOf: ['auto', 'toolhive', 'upstream'] }) as SourceFormat | undefined
  if ((type === 'api' || type === 'kubernetes') && format === 'toolhive')
    reader.problem('format', `of ${AN[type]} source is always upstream`)
  const strict = reader.flag('strict')
  if (type === 'kubernetes' && strict !== undefined) reader.problem('strict', 'has no meaning for a kubernetes source')
  let interval = type === 'kubernetes' ? KUBERNETES_INTERVAL_MS : undefined
  const policy = reader.child('syncPolicy', {}, (syncPolicy) => {
    known(syncPolicy, ['interval'])
    interval = duration(syncPolicy, 'interval', { required: true, min: '1s', max: '8760h' })
  })
  const filter = reader.child('filter', {}, checkFilter)
  return {
    ...(format === undefined ? {} : { format }),
    ...(strict === undefined ? {} : { strict }),
    ...(interval === undefined || (policy === undefined && type !== 'kubernetes') ? {} : { intervalMs: interval }),
    ...(filter === undefined ? {} : { filter: filter as FilterConfig }),
  }
}

const AN = { api: 'an api', kubernetes: 'a kubernetes' } as const

function checkFilter(filter: ObjectReader): void {
  known(filter, ['names', 'tags'])
  for (const part of ['names', 'tags'] as const) {
    filter.child(part, {}, (lists) => {
      known(lists, ['include', 'exclude'] satisfies (keyof IncludeExclude)[])
      for (const list of ['include', 'exclude']) lists.texts(list, { check: part === 'names' ? patternProblem : tagProblem })
    })
  }
}

function claimsOf(reader: ObjectReader): { claims?: Claims } {
  const claims = reader.child('claims', {}, (map) => {
    for (const [name, value] of Object.entries(map.object)) {
      if (typeof value === 'string' || (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')))
        continue
      map.problem(name, `must be a string or a list of strings, not ${kindOf(value)}`)
    }
  })
  return claims === undefined ? {} : { claims: claims as Claims }
}

function kindOf(value: Json): string {
  if (value === null) return 'null'
  if (!Array.isArray(value)) return typeof value
  return value.length === 0 ? 'an empty list' : 'a list with something else in it'
}

interface DurationRule {
  readonly required?: boolean
  readonly min?: string
  readonly max: string
}

function duration(reader: ObjectReader, name: string, rule: DurationRule): number | undefined {
  const text = reader.text(name, { required: rule.required === true })
  if (text === undefined) return undefined
  const ms = tryParseDuration(text)
  if (ms === undefined) reader.problem(name, 'must be a duration such as 30s, 15m or 1h30m')
  else if (rule.min === undefined && ms <= 0) reader.problem(name, 'must be greater than 0')
  else if (rule.min !== undefined && ms < (tryParseDuration(rule.min) ?? 0)) reader.problem(name, `must be at least ${rule.min}`)
  else if (ms > (tryParseDuration(rule.max) ?? 0)) reader.problem(name, `must be at most ${rule.max}`)
  return ms
}

/** Users who may create sources through the API must not have the server send files of its own to an address of their choice. */
function sentFileProblem(path: string, { fromApi }: SourceCheckOptions): string | undefined {
  return fromApi ? 'cannot be given through the admin API: configure this source in the file' : serverPathProblem(path)
}

function endpointProblem(text: string): string | undefined {
  const problem = addressProblem(text, {})
  if (problem !== undefined) return problem
  return /\/v0(?:\.1)?(?:\/servers)?\/?$/.test(text) ? 'must be the base address: /v0.1/servers is appended to it' : undefined
}

function nameProblem(name: string): string | undefined {
  return /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(name)
    ? undefined
    : 'must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit at both ends'
}

function patternProblem(pattern: string): string | undefined {
  const result = compileGlob(pattern)
  if (pattern === '') return 'must not be empty'
  return result.ok ? undefined : `is no pattern: ${result.problem}`
}

function tagProblem(tag: string): string | undefined {
  return tag === '' ? 'must not be empty' : undefined
}

function known(reader: ObjectReader, names: readonly string[]): void {
  for (const name of Object.keys(reader.object)) {
    if (names.includes(name)) continue
    reader.problem(name, names.length === 0 ? 'takes no members' : `is not known here; known are ${names.join(', ')}`)
  }
}

function failed(problems: Problems, { path }: SourceCheckOptions): SourceCheck {
  return { ok: false, problems: problems.list.map(({ pointer, message }) => ({ pointer: `${path}${pointer}`, message })) }
}
