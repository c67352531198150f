import { MAX_SHARDS, shardFile, shardName } from '@thv/catalog/shards/shards'
import { configHash } from '@thv/kernel/config-hash'
import type { CanonicalMCPRegistrySpec, CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { Volume, VolumeMount } from '../../../deployment/contribution.ts'
import type { ExportScope } from '../../../export/export-scope.ts'
import { DEFAULT_CA_KEY } from '../config/auth-config.ts'
import { exportSourceName } from '../config/export-source.ts'
import {
  CONFIG_FOLDER,
  CONFIG_VOLUME,
  certificateFolder,
  DATA_FOLDER,
  PGPASS_FOLDER,
  PGPASS_VOLUME,
  STORAGE_VOLUME,
  secretFolder,
  sourceFolder,
  sourceVolume,
  TMP_VOLUME,
} from '../config/registry-place.ts'
import { STORAGE_ENTRY } from '../config/storage-entry.ts'
import { aggregateName, registryNames } from './names.ts'

export interface PodFiles {
  readonly volumes: Volume[]
  readonly mounts: VolumeMount[]
}

/** All files of the API pod. A missing ConfigMap or Secret never keeps the pod from starting: its source fails, and says so. */
export function podFiles(name: string, spec: CanonicalMCPRegistrySpec, exported: ExportScope | undefined): PodFiles {
  const all: { volume: Volume; mount: VolumeMount | undefined }[] = [
    {
      volume: { name: CONFIG_VOLUME, configMap: { name: registryNames(name).config } },
      mount: { name: CONFIG_VOLUME, mountPath: CONFIG_FOLDER, readOnly: true },
    },
    { volume: { name: TMP_VOLUME, emptyDir: {} }, mount: { name: TMP_VOLUME, mountPath: '/tmp' } },
    ...storage(spec),
    ...exportFiles(name, spec, exported),
    ...sources(name, spec),
    ...keyed('secret', secretKeys(spec), (secret) => secretFolder(secret)),
    ...keyed('certs', certificateKeys(spec), (configMap) => certificateFolder(configMap)),
    ...pgpass(spec),
  ]
  const user = spec.volumes as unknown as Volume[]
  const own = all.filter(({ volume }) => volume.name !== STORAGE_VOLUME || !user.some((each) => each.name === STORAGE_VOLUME))
  return {
    volumes: [...own.map(({ volume }) => volume), ...user],
    mounts: [...all.flatMap(({ mount }) => (mount === undefined ? [] : [mount])), ...(spec.volumeMounts as unknown as VolumeMount[])],
  }
}

interface File {
  readonly volume: Volume
  readonly mount: VolumeMount
}

/** The embedded store; configYAML may use the folder too. */
function storage(spec: CanonicalMCPRegistrySpec): File[] {
  if (spec.databaseConfig !== undefined) return []
  // A whole configuration may bring its own data folder.
  if ('configYAML' in spec && spec.volumeMounts.some(({ mountPath }) => mountPath === DATA_FOLDER)) return []
  return [{ volume: { name: STORAGE_VOLUME, emptyDir: {} }, mount: { name: STORAGE_VOLUME, mountPath: DATA_FOLDER } }]
}

/** In mode operator the servers of the cluster come as files. */
function exportFiles(name: string, spec: CanonicalMCPRegistrySpec, exported: ExportScope | undefined): File[] {
  if (exported?.mode !== 'operator') return []
  const source = exportSourceName(spec)
  return [folder(source, shardVolume(source, registryNames(name).export))]
}

function sources(name: string, spec: CanonicalMCPRegistrySpec): File[] {
  if ('source' in spec) return [folder(STORAGE_ENTRY, shardVolume(STORAGE_ENTRY, registryNames(name).storage))]
  return 'registries' in spec ? spec.registries.flatMap((entry) => entrySource(name, entry)) : []
}

function entrySource(name: string, entry: CanonicalRegistryEntry): File[] {
  const volume = sourceVolume(entry.name)
  if (entry.configMapSelector !== undefined) return [folder(entry.name, shardVolume(entry.name, aggregateName(name, entry.name)))]
  if (entry.configMapRef !== undefined) {
    const items = [{ key: entry.configMapRef.key, path: 'registry.json' }]
    return [folder(entry.name, { name: volume, configMap: { name: entry.configMapRef.name, items, optional: true } })]
  }
  if (entry.pvcRef === undefined) return []
  return [folder(entry.name, { name: volume, persistentVolumeClaim: { claimName: entry.pvcRef.claimName, readOnly: true } })]
}

function folder(entry: string, volume: Volume): File {
  return { volume, mount: { name: volume.name, mountPath: sourceFolder(entry), readOnly: true } }
}

/** All shards there can be, so that a new one changes no Deployment. */
function shardVolume(entry: string, first: string): Volume {
  const shards = Array.from({ length: MAX_SHARDS }, (_, index) => ({
    configMap: { name: shardName(first, index), items: [{ key: 'registry.json', path: shardFile(index) }], optional: true },
  }))
  return { name: sourceVolume(entry), projected: { sources: shards } }
}

type Keys = ReadonlyMap<string, ReadonlySet<string>>

/** Keys of Secrets that the server reads as files. */
export function secretKeys(spec: CanonicalMCPRegistrySpec): Keys {
  const { oauth, writeTokenSecretRef } = spec.authConfig
  const providers = oauth?.providers ?? []
  const git = 'registries' in spec ? spec.registries.map((entry) => entry.git?.auth?.passwordSecretRef) : []
  return collected([
    ...git,
    writeTokenSecretRef,
    ...providers.flatMap(({ clientSecretRef, authTokenRef }) => [clientSecretRef, authTokenRef]),
  ])
}

/** Keys of ConfigMaps with CA certificates. */
export function certificateKeys(spec: CanonicalMCPRegistrySpec): Keys {
  const providers = spec.authConfig.oauth?.providers ?? []
  return collected(providers.map(({ caCertRef }) => caCertRef && { name: caCertRef.name, key: caCertRef.key ?? DEFAULT_CA_KEY }))
}

function collected(refs: readonly ({ name: string; key: string } | undefined)[]): Keys {
  const keys = new Map<string, Set<string>>()
  for (const ref of refs) if (ref !== undefined) keys.set(ref.name, (keys.get(ref.name) ?? new Set()).add(ref.key))
  return keys
}

function keyed(kind: 'secret' | 'certs', keys: Keys, folderOf: (name: string) => string): File[] {
  return [...keys].map(([object, names]) => {
    const items = [...names].sort().map((key) => ({ key, path: key }))
    const name = volumeName(kind, object)
    const source =
      kind === 'secret' ? { secret: { secretName: object, items, optional: true } } : { configMap: { name: object, items, optional: true } }
    return { volume: { name, ...source }, mount: { name, mountPath: folderOf(object), readOnly: true } }
  })
}

/** The group of the pod may read it, others may not: so the server accepts it. */
function pgpass({ pgpassSecretRef }: CanonicalMCPRegistrySpec): File[] {
  if (pgpassSecretRef === undefined) return []
  const { name, key } = pgpassSecretRef
  return [
    {
      volume: { name: PGPASS_VOLUME, secret: { secretName: name, items: [{ key, path: '.pgpass' }], defaultMode: 0o440 } },
      mount: { name: PGPASS_VOLUME, mountPath: PGPASS_FOLDER, readOnly: true },
    },
  ]
}

/** A DNS label, whatever the object is called. */
function volumeName(kind: string, object: string): string {
  const plain = `${kind}-${object}`
  return plain.length <= 63 && !plain.includes('.') ? plain : `${kind}-${configHash(object)}`
}
