import { createHash, randomUUID } from 'node:crypto'
import { rename, rm } from 'node:fs/promises'
import { type TarEntry, writeTar } from './tar.ts'

/** A container image of one layer. */
export interface Image {
  /** NAME:TAG, with a tag that is not `latest`: a cluster takes that one for "always pull". */
  readonly tags: readonly string[]
  readonly files: readonly TarEntry[]
  readonly config: ImageConfig
}

/** The fields of an OCI image configuration, under their names there. */
export interface ImageConfig {
  readonly User?: string
  readonly Env?: readonly string[]
  readonly Entrypoint?: readonly string[]
  readonly Cmd?: readonly string[]
  readonly WorkingDir?: string
  readonly Labels?: Readonly<Record<string, string>>
  readonly ExposedPorts?: Readonly<Record<string, object>>
}

export interface WrittenImage {
  /** The image id, in the terms of container engines. */
  readonly id: string
  readonly size: number
}

/** Writes what `docker load` and `ctr images import` read. No engine is needed, and the same image gives the same bytes. */
export async function writeImageArchive(output: string, image: Image): Promise<WrittenImage> {
  for (const tag of image.tags) checkTag(tag)
  const own = `${output}.${randomUUID()}`
  const [layerFile, unfinished] = [`${own}.layer`, `${own}.tmp`]
  try {
    const layer = await writeTar(layerFile, image.files)
    const config = JSON.stringify(configuration(image.config, layer.sha256))
    const id = createHash('sha256').update(config).digest('hex')
    const layerName = `${layer.sha256}.tar`
    const manifest = JSON.stringify([{ Config: `${id}.json`, RepoTags: image.tags, Layers: [layerName] }])
    const { size } = await writeTar(unfinished, [
      { path: `${id}.json`, content: { kind: 'bytes', bytes: config } },
      { path: layerName, content: { kind: 'file', source: layerFile } },
      { path: 'manifest.json', content: { kind: 'bytes', bytes: manifest } },
    ])
    await rename(unfinished, output)
    return { id: `sha256:${id}`, size }
  } finally {
    for (const path of [layerFile, unfinished]) await rm(path, { force: true })
  }
}

function configuration(config: ImageConfig, layerDigest: string): object {
  const created = '1970-01-01T00:00:00Z'
  return {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    created,
    config,
    rootfs: { type: 'layers', diff_ids: [`sha256:${layerDigest}`] },
    history: [{ created, created_by: 'scripts/image.ts' }],
  }
}

function checkTag(tag: string): void {
  const name = /^[a-z0-9][a-z0-9._/-]*(?::\d+\/[a-z0-9._/-]+)?:([\w][\w.-]*)$/.exec(tag)
  if (!name) throw new Error(`not an image name with a tag: "${tag}"`)
  if (name[1] === 'latest') throw new Error(`${tag}: the tag must not be latest`)
}
