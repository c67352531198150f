import { errorMessage, ThvError } from '@thv/kernel/errors'
import { withCluster } from '../cluster/open-cluster.ts'
import { platformFolder } from '../local-platform/platform-folder.ts'
import { findRunning } from '../local-platform/running-platform.ts'
import { alignedRows } from '../objects/print-table.ts'
import type { ProgramEnv } from '../program.ts'
import { plainText, shortened } from '../text/plain-text.ts'
import { registryState } from './registry-state.ts'

export interface SearchOptions {
  readonly tag: readonly string[]
  readonly from: readonly string[]
  readonly transport: readonly string[]
  readonly registry?: string
  readonly limit: string
  readonly output: 'table' | 'json'
  readonly header: readonly string[]
  readonly dataDir?: string
}

/** A server as far as a line about it tells. */
interface Found {
  readonly server: {
    readonly name: string
    readonly version: string
    readonly title?: string
    readonly description?: string
    /** Documents of the first schema spell it `registry_type`. */
    readonly packages?: readonly { readonly registryType?: string; readonly registry_type?: string }[]
    readonly remotes?: readonly { readonly type: string; readonly url: string }[]
  }
}

const SEARCH_PATH = '/v0.1/x/dev.toolhive/search'
const LIMIT_MS = 10_000
const MAX_BYTES = 16 << 20
const MAX_DESCRIPTION = 76
const MAX_FROM = 24
const TRANSPORTS = ['stdio', 'sse', 'streamable-http']

/** thv search TEXT: the servers of a registry that fit, best first. */
export async function runSearch(words: readonly string[], options: SearchOptions, env: ProgramEnv): Promise<void> {
  const query = queryOf(words, options)
  const base = await registryUrl(options, env)
  const { servers } = await ask(`${base}${SEARCH_PATH}?${query}`, options, env)
  if (options.output === 'json') {
    env.out(`${JSON.stringify(servers, null, 2)}\n`)
    return
  }
  if (servers.length === 0) {
    env.err(`No servers in ${base} match ${asked(words, options)}.\n`)
    return
  }
  const rows = servers.map(({ server }) => [
    plainText(server.name),
    plainText(server.version),
    shortened(plainText(reachedBy(server)), MAX_FROM),
    shortened(plainText(server.description ?? server.title ?? ''), MAX_DESCRIPTION),
  ])
  env.out(`${alignedRows([['NAME', 'VERSION', 'FROM', 'DESCRIPTION'], ...rows]).join('\n')}\n`)
}

function queryOf(words: readonly string[], options: SearchOptions): URLSearchParams {
  const text = words.join(' ').trim()
  if (text === '' && !filtered(options)) throw new ThvError('usage', 'specify search words, or one of --tag, --from and --transport')
  const { tag, from, transport } = options
  const unknown = transport.find((value) => !TRANSPORTS.includes(value))
  if (unknown !== undefined)
    throw new ThvError('usage', `--transport must be one of ${TRANSPORTS.join(', ')}, not ${JSON.stringify(unknown)}`)
  if ([...tag, ...from].includes('')) throw new ThvError('usage', '--tag and --from must not be empty')
  const query = new URLSearchParams(text === '' ? {} : { q: text })
  query.set('limit', limitOf(options.limit))
  for (const [name, values] of Object.entries({ tag, registry_type: from, transport }))
    for (const value of values) query.append(name, value)
  return query
}

function filtered({ tag, from, transport }: SearchOptions): boolean {
  return tag.length + from.length + transport.length > 0
}

function asked(words: readonly string[], options: SearchOptions): string {
  const text = words.join(' ').trim()
  return [...(text === '' ? [] : [JSON.stringify(text)]), ...(filtered(options) ? ['the filters'] : [])].join(' and ')
}

/** `--registry`: a whole registry (`…/registry/NAME`), or the address of a registry server, of which all registries are asked. */
async function registryUrl({ registry, dataDir }: SearchOptions, env: ProgramEnv): Promise<string> {
  if (registry !== undefined) {
    if (!URL.canParse(registry) || !/^https?:$/.test(new URL(registry).protocol))
      throw new ThvError('usage', `--registry must be an http or https address, not ${JSON.stringify(registry)}`)
    const { origin, pathname } = new URL(registry)
    const path = pathname.replace(/\/+$/, '')
    return path === '' ? `${origin}/registry` : `${origin}${path}`
  }
  const folder = platformFolder(dataDir === undefined ? {} : { dataDir }, env)
  const state =
    findRunning(folder) && (await withCluster({ dataDir: folder }, env, async ({ client }) => await registryState(client, env.signal)))
  if (state === undefined)
    throw new ThvError('platform_stopped', `no registry is running in ${folder}; start one with "thv up", or set --registry`)
  if (state.url === undefined)
    throw new ThvError('source_failed', `the registry of the platform does not answer: ${[state.state, state.detail].join(' ').trim()}`)
  return state.url
}

function limitOf(text: string): string {
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new ThvError('usage', `--limit must be a number from 1 to 100, not ${text}`)
  return text
}

async function ask(url: string, options: SearchOptions, env: ProgramEnv): Promise<{ servers: readonly Found[] }> {
  const limit = AbortSignal.timeout(LIMIT_MS)
  const signal = env.signal === undefined ? limit : AbortSignal.any([limit, env.signal])
  const headers = { accept: 'application/json', ...headersOf(options.header) }
  let status: number
  let text: string
  try {
    const answer = await fetch(url, { signal, headers })
    status = answer.status
    text = await boundedText(answer.body)
  } catch (error) {
    throw new ThvError('source_failed', `the registry at ${new URL(url).origin} does not answer: ${errorMessage(error)}`, { cause: error })
  }
  const value = parsed(text) as { servers?: readonly Found[]; error?: unknown } | undefined
  if (status === 200 && Array.isArray(value?.servers)) return { servers: value.servers }
  const why = typeof value?.error === 'string' ? plainText(value.error) : `it answered ${status}`
  if (status === 404) throw new ThvError('source_failed', `${new URL(url).origin} has no such registry, or does not support search: ${why}`)
  throw new ThvError('source_failed', `the registry at ${new URL(url).origin} cannot be searched: ${why}`)
}

async function boundedText(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new ThvError('source_limit', 'the response is too large')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // not a registry: the caller says so
  }
}

function headersOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      if (at < 1) throw new ThvError('usage', '--header must be NAME=VALUE')
      return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]
    }),
  )
}

/** All that `--from` finds it by. */
function reachedBy({ packages = [], remotes = [] }: Found['server']): string {
  const types = packages.map(({ registryType, registry_type }) => registryType ?? registry_type)
  return [...new Set([...types, ...(remotes.length > 0 ? ['remote'] : [])])].filter(Boolean).join(', ') || '-'
}
