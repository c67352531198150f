import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PlatformManifest } from '@thv/cluster/platform/apply-manifests'
import { ThvError } from '@thv/kernel/errors'
import { configMaps, secrets } from '@thv/kube/objects/resource-types'
import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import { mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { writePrivate } from '../local-platform/running-platform.ts'
import type { ServerResource } from '../platform/server-states.ts'
import { movableConfig, serverVariables } from './own-config.ts'

/** The registry that comes with the platform: `/registry/default/…` of its API. */
export const REGISTRY_KEY = { namespace: 'default', name: 'default' }
export const registryType = mcpRegistryType as unknown as ResourceType<RegistryResource>

export interface RegistryResource extends KubeObject {
  readonly status?: NonNullable<ServerResource['status']>
}

export interface PlatformRegistryOptions {
  /** The data folder of the platform. */
  readonly folder: string
  /** A configuration of the user's own; without one the bundled catalog is served. */
  readonly config?: { readonly file: string; readonly text: string } | undefined
  readonly variables: Readonly<Record<string, string | undefined>>
}

const CATALOG = 'toolhive-catalog'
const TOKEN = 'toolhive-registry-token'
const VARIABLES = 'toolhive-registry-variables'
const TOKEN_FILE = 'write-token'
const API_CONTAINER = 'registry-api'

/** The registry of the platform as objects. Its published servers and its token for writing are in `registry` of the data folder. */
export async function registryManifests(options: PlatformRegistryOptions): Promise<PlatformManifest[]> {
  const { folder, config } = options
  const data = join(folder, 'registry')
  const variables = serverVariables(config?.text ?? '', options.variables)
  const common = {
    volumes: [{ name: 'storage-data', hostPath: { path: data, type: 'DirectoryOrCreate' } }],
    ...(Object.keys(variables).length > 0 && {
      podTemplateSpec: { spec: { containers: [{ name: API_CONTAINER, envFrom: [{ secretRef: { name: VARIABLES } }] }] } },
    }),
  }
  const environment = secretOf(VARIABLES, variables)
  if (config !== undefined) {
    const configYAML = movableConfig(config.text, config.file, options.variables)
    return [environment, registryOf({ configYAML, ...common })]
  }
  const { bundledCatalog } = await import('@thv/catalog/bundled/bundled-catalog')
  const spec = {
    registries: [
      { name: 'catalog', format: 'upstream', configMapRef: { name: CATALOG, key: 'registry.json' } },
      { name: 'published', managed: {} },
    ],
    authConfig: { mode: 'anonymous', writeTokenSecretRef: { name: TOKEN, key: 'token' } },
    export: { mode: 'server', namespaces: ['*'] },
    ...common,
  }
  const catalog = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: at(CATALOG),
    data: { 'registry.json': JSON.stringify(bundledCatalog) },
  }
  return [environment, { type: configMaps, object: catalog }, secretOf(TOKEN, { token: writeToken(data) }), registryOf(spec)]
}

function registryOf(spec: object): PlatformManifest {
  const object = { apiVersion: `${mcpRegistryType.group}/${mcpRegistryType.version}`, kind: 'MCPRegistry', metadata: REGISTRY_KEY, spec }
  return { type: mcpRegistryType as unknown as ResourceType, object: object as KubeObject }
}

function secretOf(name: string, values: Readonly<Record<string, string>>): PlatformManifest {
  const data = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  return { type: secrets, object: { apiVersion: 'v1', kind: 'Secret', metadata: at(name), data } as KubeObject }
}

function at(name: string): { namespace: string; name: string } {
  return { namespace: REGISTRY_KEY.namespace, name }
}

/** The token that publishing needs, which is for the owner of the data folder; made once. */
function writeToken(folder: string): string {
  const path = join(folder, TOKEN_FILE)
  try {
    const known = readFileSync(path, 'utf8').trim()
    if (known !== '') return known
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw new ThvError('data_folder_failed', `${path} cannot be read`, { cause })
  }
  const token = randomBytes(32).toString('base64url')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writePrivate(path, `${token}\n`)
  return token
}
