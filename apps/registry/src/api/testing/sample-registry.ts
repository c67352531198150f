import type { SourceConfig } from '@thv/catalog/sources/source-config'
import type { RegistrySpec } from '../../store/registry-store.ts'
import type { FixtureEntry } from './fixture-engine.ts'

/** A registry with everything that makes a difference: several versions, deleted and deprecated ones, two sources with the same name. */
export const sampleSources: readonly SourceConfig[] = [
  { name: 'own', managed: {} },
  { name: 'catalogue', file: { path: '/srv/registry.json' }, intervalMs: 1_800_000, filter: { tags: { exclude: ['beta'] } } },
  { name: 'mirror', git: { repository: 'https://user:secret@git.example.com/servers.git', branch: 'main' }, intervalMs: 60_000 },
]

export const sampleRegistries: readonly RegistrySpec[] = [
  { name: 'default', sources: ['own', 'catalogue'] },
  { name: 'readonly', sources: ['catalogue', 'mirror'] },
]

/** Members out of order, numbers that doubles cannot hold, icons, variables, members nobody knows: all of it has to come back. */
export const losslessText =
  '{"zebra":{"9":1,"10":2,"1":3},"name":"io.github.example/weather","version":"1.10.0","description":"Weather data — °C","exact":12345678901234567890.10,' +
  '"icons":[{"src":"https://example.com/i.png","sizes":["48x48"]}],"remotes":[{"type":"streamable-http","url":"https://{region}.example.com/mcp",' +
  '"variables":{"region":{"default":"eu"}}}],"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"x":{"y":{"tags":["weather"],"tools":["get_forecast"]}}}}}'

const weather = { source: 'catalogue', name: 'io.github.example/weather' }
const plain = (source: string, name: string, version = '1.0.0'): FixtureEntry => ({ source, name, version })

export const sampleEntries: readonly FixtureEntry[] = [
  { ...weather, version: '1.9.0' },
  { ...weather, version: '1.10.0', text: losslessText },
  { ...weather, version: '2.0.0', status: 'deleted', statusMessage: 'withdrawn' },
  { source: 'catalogue', name: 'com.example/old', version: '0.9.0', status: 'deprecated', statusMessage: 'use com.example/new' },
  { source: 'catalogue', name: 'com.example/gone', version: '1.0.0', status: 'deleted' },
  plain('catalogue', 'com.example/new', '1.0.0+build.5'),
  plain('own', 'com.example/shadow', '3.0.0'),
  plain('catalogue', 'com.example/shadow', '9.0.0'),
  plain('own', 'com.example/mine', '0.1.0'),
  plain('own', 'com.example/mine', '0.2.0'),
  plain('mirror', 'org.example/mirrored'),
  ...Array.from({ length: 40 }, (_, i) => plain('catalogue', `net.example/server-${String(i).padStart(2, '0')}`)),
]
