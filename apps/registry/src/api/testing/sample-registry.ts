import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { FetchedEntry } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { fetchedEntry } from '../../engine/testing/engine-fixture.ts'
import type { NewEntry, RegistrySpec } from '../../store/registry-store.ts'

/* A registry with everything that makes a difference: several versions, deleted and deprecated ones, two sources with the same name. */

export const sampleSources: readonly SourceConfig[] = [
  { name: 'own', managed: {} },
  { name: 'catalog', file: { path: '/srv/registry.json' }, intervalMs: 1_800_000, filter: { tags: { exclude: ['beta'] } } },
  { name: 'mirror', git: { repository: 'https://user:secret@git.example.com/servers.git', branch: 'main' }, intervalMs: 60_000 },
]

export const sampleRegistries: readonly RegistrySpec[] = [
  { name: 'default', sources: ['own', 'catalog'] },
  { name: 'readonly', sources: ['catalog', 'mirror'] },
]

/** Members out of order, numbers that doubles cannot hold, icons, variables, unknown members: all of it has to come back. */
export const losslessText =
  '{"zebra":{"9":1,"10":2,"1":3},"name":"io.github.example/weather","version":"1.10.0","description":"Weather data — °C",' +
  '"exact":12345678901234567890.10,"icons":[{"src":"https://example.com/i.png","sizes":["48x48"]}],' +
  '"remotes":[{"type":"streamable-http","url":"https://{region}.example.com/mcp","variables":{"region":{"default":"eu"}}}],' +
  '"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"x":{"y":{"tags":["weather"],"tools":["get_forecast"]}}}}}'

const npmPackage = { registryType: 'npm', identifier: '@example/new', version: '1.0.0', transport: { type: 'stdio' } }

const weather = (version: string, more: Parameters<typeof fetchedEntry>[2] = {}) => fetchedEntry('io.github.example/weather', version, more)

export const fetchedSamples: Readonly<Record<string, readonly FetchedEntry[]>> = {
  catalog: [
    weather('1.9.0', { publishedAt: '2025-01-01T00:00:00Z' }),
    weather('1.10.0', { text: losslessText, publishedAt: '2025-03-01T00:00:00Z' }),
    weather('2.0.0', { status: 'deleted', statusMessage: 'withdrawn', publishedAt: '2025-02-01T00:00:00Z' }),
    fetchedEntry('com.example/old', '0.9.0', { status: 'deprecated', statusMessage: 'use com.example/new' }),
    fetchedEntry('com.example/gone', '1.0.0', { status: 'deleted' }),
    fetchedEntry('com.example/new', '1.0.0+build.5', { document: { title: 'The New One', packages: [npmPackage] } }),
    fetchedEntry('com.example/shadow', '9.0.0'),
    ...Array.from({ length: 40 }, (_, i) => fetchedEntry(`net.example/server-${String(i).padStart(2, '0')}`, '1.0.0')),
  ],
  mirror: [fetchedEntry('org.example/mirrored', '1.0.0')],
}

export type PublishedSample = Pick<NewEntry, 'name' | 'version' | 'claims'> & {
  readonly status?: EntryStatus
  readonly statusMessage?: string
}

export const publishedSamples: readonly PublishedSample[] = [
  { name: 'com.example/shadow', version: '3.0.0' },
  { name: 'com.example/mine', version: '0.1.0' },
  { name: 'com.example/mine', version: '0.2.0' },
  { name: 'com.example/mine', version: '0.3.0', status: 'deleted', statusMessage: 'a mistake' },
]
