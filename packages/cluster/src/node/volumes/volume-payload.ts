import type { PodPlace } from '../network/pod-network.ts'
import type { DownwardFile, KeyToPath, NodePod, ProjectedSource, TokenSource, VolumeSpec } from '../pod/pod-spec.ts'
import { podField, resourceField } from '../values/downward.ts'
import type { ObjectSource } from '../values/object-source.ts'
import { MountError } from './mount-error.ts'
import { type Payload, type PayloadFile, pathProblem } from './payload-folder.ts'

export interface PayloadInput {
  readonly pod: NodePod
  readonly place: PodPlace
  readonly objects: ObjectSource
  readonly token: (source: TokenSource) => Promise<string>
}

/** Files of a volume. Undefined for a volume that is not made of objects. Throws MountError. */
export async function volumePayload(volume: VolumeSpec, input: PayloadInput): Promise<Payload | undefined> {
  const { configMap, secret, projected, downwardAPI } = volume
  const own = configMap ?? secret ?? projected ?? downwardAPI
  if (own === undefined) return undefined
  const sources: ProjectedSource[] = projected?.sources ?? [
    {
      ...(configMap && { configMap }),
      ...(secret && { secret: { name: secret.secretName ?? '', ...without(secret) } }),
      ...(downwardAPI && { downwardAPI }),
    },
  ]
  const files = new Map<string, PayloadFile>()
  const add = (path: string, bytes: Uint8Array, mode = own.defaultMode ?? 0o644) => {
    const problem = pathProblem(path)
    if (problem !== undefined) throw new MountError(volume.name, `path ${JSON.stringify(path)} ${problem}`)
    files.set(path, { bytes, mode: ownerOnly(mode) })
  }
  for (const source of sources) {
    const known = source.configMap ?? source.secret ?? source.downwardAPI ?? source.serviceAccountToken
    if (known === undefined) throw new MountError(volume.name, `this node cannot mount a source of type ${kindOf(source)}`)
    for (const [path, bytes, mode] of await sourceFiles(source, { ...input, volume: volume.name })) add(path, bytes, mode)
  }
  checkOverlap(volume.name, files)
  return files
}

type SourceFile = readonly [path: string, bytes: Uint8Array, mode?: number]

async function sourceFiles(source: ProjectedSource, input: PayloadInput & { volume: string }): Promise<SourceFile[]> {
  const { configMap, secret, downwardAPI, serviceAccountToken } = source
  if (configMap) return pick(await input.objects.configMap(configMap.name ?? ''), { ...configMap, kind: 'configmap', ...input })
  if (secret) return pick(await input.objects.secret(secret.name ?? ''), { ...secret, kind: 'secret', ...input })
  if (serviceAccountToken) return [[serviceAccountToken.path, Buffer.from(await input.token(serviceAccountToken)), 0o600]]
  return (downwardAPI?.items ?? []).map((item) => [item.path, Buffer.from(downwardText(item, input)), ...modeOf(item)])
}

interface Picked extends PayloadInput {
  readonly kind: 'configmap' | 'secret'
  readonly name?: string
  readonly items?: readonly KeyToPath[]
  readonly optional?: boolean
  readonly volume: string
}

function pick(data: ReadonlyMap<string, Uint8Array> | undefined, { kind, name = '', items, optional, volume, pod }: Picked): SourceFile[] {
  if (data === undefined) {
    if (optional) return []
    throw new MountError(volume, `${kind} ${JSON.stringify(name)} not found`)
  }
  if (items === undefined) return [...data]
  return items.flatMap((item): SourceFile[] => {
    const bytes = data.get(item.key)
    if (bytes !== undefined) return [[item.path, bytes, ...modeOf(item)]]
    if (optional) return []
    const text = kind === 'configmap' ? 'config' : 'secret'
    throw new MountError(volume, `references non-existent ${text} key: ${item.key} (${kind} ${pod.metadata.namespace}/${name})`)
  })
}

function downwardText(item: DownwardFile, { pod, place, volume }: PayloadInput & { volume: string }): string {
  const { fieldRef, resourceFieldRef } = item
  const value = fieldRef
    ? podField(pod, fieldRef.fieldPath, place)
    : resourceFieldRef && resourceField(pod, resourceFieldRef, resourceFieldRef.containerName ?? '')
  if (value === undefined) throw new MountError(volume, `unsupported reference ${fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? ''}`)
  return value
}

/** One file cannot be the folder of another. */
function checkOverlap(volume: string, files: ReadonlyMap<string, unknown>): void {
  for (const path of files.keys()) {
    const parts = path.split('/')
    for (let length = 1; length < parts.length; length++) {
      const folder = parts.slice(0, length).join('/')
      if (files.has(folder))
        throw new MountError(volume, `${JSON.stringify(folder)} is both a file and the folder of ${JSON.stringify(path)}`)
    }
  }
}

/** The processes run as the user who started the platform, so no other user needs to read the files of pods. */
function ownerOnly(mode: number): number {
  return (mode & 0o700) | 0o400
}

function modeOf({ mode }: { mode?: number }): [number] | [] {
  return mode === undefined ? [] : [mode]
}

function kindOf(source: object): string {
  return Object.keys(source)[0] ?? 'nothing'
}

function without({ secretName: _, ...rest }: NonNullable<VolumeSpec['secret']>) {
  return rest
}
