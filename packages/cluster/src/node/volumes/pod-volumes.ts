import { lstat, mkdir, open, realpath, rmdir, stat, symlink, unlink } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize, relative } from 'node:path'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { makeFolder } from '@thv/programs/make-folder'
import type { PodPlace } from '../network/pod-network.ts'
import type { ContainerSpec, NodePod, VolumeMount, VolumeSpec } from '../pod/pod-spec.ts'
import { expand } from '../values/expansion.ts'
import { objectSource } from '../values/object-source.ts'
import { AccountTokens } from './account-tokens.ts'
import { MountError } from './mount-error.ts'
import { pathProblem, writePayload } from './payload-folder.ts'
import { volumePayload } from './volume-payload.ts'

export interface PodVolumesOptions {
  /** Of this pod alone. */
  readonly folder: string
  readonly client: KubeClient
  readonly clock: Clock
  readonly place: PodPlace
}

/** Lays out a pod's volumes in its folder: `volumes/<name>` holds them, `root/<container>/<mountPath>` leads to them. */
export class PodVolumes {
  readonly #options: PodVolumesOptions
  readonly #tokens: AccountTokens

  constructor(options: PodVolumesOptions) {
    this.#options = options
    this.#tokens = new AccountTokens(options.client, options.clock)
  }

  /** When `refresh` should be called for the sake of tokens, on the clock's monotonic time. */
  get renewAt(): number | undefined {
    return this.#tokens.renewAt
  }

  rootOf(container: string): string {
    return join(this.#options.folder, 'root', container)
  }

  /** Throws MountError for the first volume that cannot be made ready. May be repeated. */
  async setUp(pod: NodePod, signal: AbortSignal): Promise<void> {
    for (const volume of pod.spec.volumes ?? []) await this.#setUpOne(pod, volume, signal)
  }

  /** Brings files up to date. Files whose source is missing now stay as they are; the errors are returned. */
  async refresh(pod: NodePod, signal: AbortSignal): Promise<MountError[]> {
    const errors: MountError[] = []
    for (const volume of pod.spec.volumes ?? []) {
      try {
        await this.#writeFiles(pod, volume, signal)
      } catch (error) {
        signal.throwIfAborted()
        errors.push(asMountError(volume.name, error))
      }
    }
    return errors
  }

  /** Leads a container's mount paths to the volumes. Throws MountError. */
  async mount(pod: NodePod, container: ContainerSpec, env: Readonly<Record<string, string>>): Promise<void> {
    const root = this.rootOf(container.name)
    await mkdir(root, { recursive: true, mode: 0o700 })
    const mounts = [...(container.volumeMounts ?? [])].sort((a, b) => mountPlace(a).length - mountPlace(b).length)
    for (const mount of mounts) {
      const volume = pod.spec.volumes?.find(({ name }) => name === mount.name)
      if (volume === undefined) throw new MountError(mount.name, `there is no volume ${JSON.stringify(mount.name)}`)
      try {
        await this.#link(volume, mount, { root, env, under: hostPathAbove(pod, mount, mounts) })
      } catch (error) {
        throw asMountError(volume.name, error)
      }
    }
  }

  async #setUpOne(pod: NodePod, volume: VolumeSpec, signal: AbortSignal): Promise<void> {
    try {
      if (await this.#writeFiles(pod, volume, signal)) return
      if (volume.emptyDir) await mkdir(this.#folderOf(volume), { recursive: true, mode: 0o700 })
      else if (volume.hostPath) await prepareHostPath(volume.name, volume.hostPath)
      else throw new MountError(volume.name, `this node cannot mount volumes of type ${typeOf(volume)}: pods are processes of this machine`)
    } catch (error) {
      signal.throwIfAborted()
      throw asMountError(volume.name, error)
    }
  }

  /** False for a volume that is not made of objects. */
  async #writeFiles(pod: NodePod, volume: VolumeSpec, signal: AbortSignal): Promise<boolean> {
    const { client, place } = this.#options
    const payload = await volumePayload(volume, {
      pod,
      place,
      objects: objectSource(client, pod.metadata.namespace, signal),
      token: (source) => this.#tokens.get(pod, source, signal),
    })
    if (payload === undefined) return false
    await writePayload(this.#folderOf(volume), payload)
    return true
  }

  #folderOf(volume: VolumeSpec): string {
    return volume.hostPath ? volume.hostPath.path : join(this.#options.folder, 'volumes', volume.name)
  }

  async #link(
    volume: VolumeSpec,
    mount: VolumeMount,
    { root, env, under }: { root: string; env: Readonly<Record<string, string>>; under: string | undefined },
  ): Promise<void> {
    const place = mountPlace(mount)
    if (place === '/') throw new MountError(volume.name, 'nothing can be mounted at /: pods are processes of this machine')
    if (under !== undefined) throw new MountError(volume.name, `${mount.mountPath} lies below the host path ${under}`)
    const target = await this.#target(volume, mount, env)
    const link = join(root, place)
    await mkdir(dirname(link), { recursive: true, mode: 0o700 })
    const there = await lstat(link).catch(() => undefined)
    if (there?.isSymbolicLink()) await unlink(link)
    else if (there !== undefined) await rmdir(link) // only when it is empty: somebody else's files are not ours to hide
    await symlink(target, link)
  }

  async #target(volume: VolumeSpec, mount: VolumeMount, env: Readonly<Record<string, string>>): Promise<string> {
    const base = this.#folderOf(volume)
    const subPath = mount.subPathExpr ? expand(mount.subPathExpr, env) : mount.subPath
    if (!subPath) return base
    const problem = pathProblem(subPath)
    if (problem !== undefined) throw new MountError(volume.name, `subPath ${JSON.stringify(subPath)} ${problem}`)
    const target = join(base, subPath)
    if (volume.emptyDir && (await stat(target).catch(() => undefined)) === undefined) await mkdir(target, { recursive: true, mode: 0o700 })
    const real = await realpath(target).catch(() => undefined)
    if (real === undefined) throw new MountError(volume.name, `subPath ${JSON.stringify(subPath)} does not exist in the volume`)
    if (!isBelow(await realpath(base), real))
      throw new MountError(volume.name, `subPath ${JSON.stringify(subPath)} leads out of the volume`)
    return target
  }
}

/** Below a container's root; can never lead out of it. */
export function mountPlace({ mountPath }: Pick<VolumeMount, 'mountPath'>): string {
  const place = normalize(join('/', mountPath)).replace(/\/+$/, '')
  return place === '' ? '/' : place
}

/** The host path in which a mount path lies, directly or in a mount between: a link there would be made in the user's own folder. */
function hostPathAbove(pod: NodePod, mount: VolumeMount, mounts: readonly VolumeMount[]): string | undefined {
  const above = mounts.filter((other) => other !== mount && isBelow(mountPlace(other), mountPlace(mount)))
  const volumes = above.map((other) => pod.spec.volumes?.find(({ name }) => name === other.name))
  return volumes.find((volume) => volume?.hostPath !== undefined)?.hostPath?.path
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way === '' || (way.split('/')[0] !== '..' && !isAbsolute(way))
}

async function prepareHostPath(volume: string, { path, type = '' }: { path: string; type?: string }): Promise<void> {
  if (!isAbsolute(path) || path.split('/').includes('..'))
    throw new MountError(volume, `hostPath ${JSON.stringify(path)} must be absolute, without '..'`)
  const there = await stat(path).catch(() => undefined)
  if (there === undefined && type === 'DirectoryOrCreate') makeFolder(path)
  else if (there === undefined && type === 'FileOrCreate') await (await open(path, 'a')).close()
  else if (there === undefined) throw new MountError(volume, `hostPath ${path} does not exist`)
  else if (type.startsWith('Directory') && !there.isDirectory())
    throw new MountError(volume, `hostPath type check failed: ${path} is not a directory`)
  else if (type.startsWith('File') && !there.isFile()) throw new MountError(volume, `hostPath type check failed: ${path} is not a file`)
  else if (type === 'Socket' && !there.isSocket()) throw new MountError(volume, `hostPath type check failed: ${path} is not a socket`)
}

function typeOf({ name: _, ...source }: VolumeSpec): string {
  return Object.keys(source)[0] ?? 'unknown'
}

function asMountError(volume: string, error: unknown): MountError {
  return error instanceof MountError ? error : new MountError(volume, errorMessage(error))
}
