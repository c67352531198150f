import { ThvError } from '@thv/kernel/errors'
import { withCluster } from '../cluster/open-cluster.ts'
import { platformFolder } from '../local-platform/platform-folder.ts'
import { findRunning } from '../local-platform/running-platform.ts'
import { alignedRows } from '../objects/print-table.ts'
import type { ProgramEnv } from '../program.ts'
import { plainText, shortened } from '../text/plain-text.ts'
import { registryState } from './registry-state.ts'
import { type FoundServer, searchRegistry } from './search-registry.ts'

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

const MAX_DESCRIPTION = 76
const MAX_FROM = 24
const TRANSPORTS = ['stdio', 'sse', 'streamable-http']

/** thv search TEXT: the servers of a registry that fit, best first. */
export async function runSearch(words: readonly string[], options: SearchOptions, env: ProgramEnv): Promise<void> {
  const query = queryOf(words, options)
  const base = await registryUrl(options, env)
  const servers = await searchRegistry(base, query, { headers: headersOf(options.header), signal: env.signal })
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
function reachedBy({ packages = [], remotes = [] }: FoundServer['server']): string {
  const types = packages.map(({ registryType, registry_type }) => registryType ?? registry_type)
  return [...new Set([...types, ...(remotes.length > 0 ? ['remote'] : [])])].filter(Boolean).join(', ') || '-'
}
