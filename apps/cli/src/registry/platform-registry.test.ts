import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube/client/client'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RegistryResource, registryManifests } from './platform-registry.ts'
import { registryState } from './registry-state.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-registry-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function objectsOf(options: Partial<Parameters<typeof registryManifests>[0]> = {}) {
  const manifests = await registryManifests({ folder, variables: {}, ...options })
  return Object.fromEntries(manifests.map(({ object }) => [`${object.kind} ${object.metadata.name}`, object as unknown as Made]))
}

interface Made {
  readonly data: Readonly<Record<string, string>>
  readonly spec: Readonly<Record<string, unknown>>
}

describe('the registry of the platform', () => {
  it('serves the catalog, then published servers, and exports all namespaces', async () => {
    const objects = await objectsOf()
    expect(Object.keys(objects)).toEqual([
      'Secret toolhive-registry-variables',
      'ConfigMap toolhive-catalog',
      'Secret toolhive-registry-token',
      'MCPRegistry default',
    ])
    expect(objects['MCPRegistry default']?.spec).toEqual({
      registries: [
        { name: 'catalog', format: 'upstream', configMapRef: { name: 'toolhive-catalog', key: 'registry.json' } },
        { name: 'published', managed: {} },
      ],
      authConfig: { mode: 'anonymous', writeTokenSecretRef: { name: 'toolhive-registry-token', key: 'token' } },
      export: { mode: 'server', namespaces: ['*'] },
      volumes: [{ name: 'storage-data', hostPath: { path: join(folder, 'registry'), type: 'DirectoryOrCreate' } }],
    })
    const text = objects['ConfigMap toolhive-catalog']?.data['registry.json'] ?? ''
    expect(text.length).toBeGreaterThan(10_000)
    expect(text.length).toBeLessThan(900 * 1024)
  })

  it('keeps its token, which only the owner can read', async () => {
    const tokenOf = async () => (await objectsOf())['Secret toolhive-registry-token']?.data['token'] ?? ''
    const first = await tokenOf()
    const path = join(folder, 'registry', 'write-token')
    expect(Buffer.from(first, 'base64').toString()).toBe(readFileSync(path, 'utf8').trim())
    expect(Buffer.from(first, 'base64').length).toBeGreaterThan(40)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await tokenOf()).toBe(first)
  })

  it('takes a configuration of the user, whose variables come from a Secret', async () => {
    const text = `sources: [{ name: a, file: { path: a.json } }]\nstorage: { path: "\${DB}" }\n`
    const objects = await objectsOf({ config: { file: '/conf/registry.yaml', text }, variables: { DB: '/srv/my.db', HOME: '/root' } })
    expect(Object.keys(objects)).toEqual(['Secret toolhive-registry-variables', 'MCPRegistry default'])
    expect(objects['Secret toolhive-registry-variables']?.data).toEqual({ DB: Buffer.from('/srv/my.db').toString('base64') })
    expect(objects['MCPRegistry default']?.spec).toMatchObject({
      configYAML: expect.stringContaining('/conf/a.json'),
      podTemplateSpec: {
        spec: { containers: [{ name: 'registry-api', envFrom: [{ secretRef: { name: 'toolhive-registry-variables' } }] }] },
      },
    })
    expect(objects['MCPRegistry default']?.spec).not.toHaveProperty('authConfig')
  })
})

describe('the state of the registry', () => {
  const failed = { phase: 'Failed', message: 'no source could be read', observedGeneration: 1 }
  const crashed = {
    metadata: { name: 'default-api-1' },
    status: {
      containerStatuses: [
        {
          name: 'registry-api',
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 1, message: 'registry.yaml:3: unknown key' } },
        },
      ],
    },
  } as unknown as Pod

  it.each([
    ['it has no status yet', {}, [], { state: 'waiting', detail: 'for the operator' }],
    ['it starts', { status: { phase: 'Pending' } }, [], { state: 'starting', detail: '(not responding yet)' }],
    ['it does not answer', { status: { phase: 'Ready', url: 'http://127.0.0.1:1' } }, [], { state: 'starting' }],
    [
      'its configuration is wrong',
      { status: { phase: 'Pending' } },
      [crashed],
      { state: 'failing', detail: expect.stringContaining('unknown key') },
    ],
    ['it has failed', { status: failed }, [], { state: 'failing', detail: 'no source could be read' }],
    [
      'an object of it is refused',
      { status: { phase: 'Failed', conditions: [{ type: 'WriteRefused', status: 'True', message: 'No quota.', observedGeneration: 1 }] } },
      [],
      { state: 'failing', detail: 'No quota.' },
    ],
    ['an older one had failed', { status: { ...failed, observedGeneration: 0 } }, [], { state: 'starting' }],
  ] as const)('%s', async (_, registry, items, state) => {
    const object = { metadata: { name: 'default', generation: 1 }, ...registry } as RegistryResource
    const client = { tryGet: async () => object, list: async () => ({ items }) } as unknown as KubeClient
    expect(await registryState(client)).toMatchObject(state)
  })

  it('is nothing where there is none', async () => {
    expect(await registryState({ tryGet: async () => undefined } as unknown as KubeClient)).toBeUndefined()
  })
})
