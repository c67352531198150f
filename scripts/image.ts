import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { type BundledProgram, bundledProgramFiles, DOC_FOLDER } from '@thv/testkit/image/bundled-program'
import { type ImageConfig, type WrittenImage, writeImageArchive } from '@thv/testkit/image/image-archive'
import { file, imageUser, nodeRuntimeFiles } from '@thv/testkit/image/node-runtime'
import { type TarEntry, writeTar } from '@thv/testkit/image/tar'
import { COMPILE_CACHE_SETTINGS, compileCacheFiles } from './image-compile-cache.ts'
import { ROOT } from './run.ts'

/*
 * Writes the image of the project as an archive, without Docker or any other engine:
 *
 *   node scripts/image.ts [--tag NAME:TAG] [--output FILE]
 *   node scripts/image.ts --layer FILE      only its files, as a plain tar file
 *
 * One image holds all programs. Load it with `docker load`, `podman load` or `ctr -n k8s.io images import`. The same sources give the
 * same bytes as long as dist keeps the compile cache. deploy/images/Dockerfile makes the same image for those who have an engine.
 */

export interface ImageOptions {
  readonly output?: string
  readonly tag?: string
}

const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version

/** deploy/images/Dockerfile says the same, and a test compares them. */
export const imageConfig: ImageConfig = {
  User: imageUser,
  Env: [
    'PATH=/usr/local/bin',
    'NODE_ENV=production',
    'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt',
    'HOME=/tmp',
    ...Object.entries({ ...MEMORY_SETTINGS, ...COMPILE_CACHE_SETTINGS }).map(([name, value]) => `${name}=${value}`),
  ],
  Cmd: ['thv', '--help'],
  WorkingDir: '/tmp',
  Labels: {
    'org.opencontainers.image.title': 'toolhive-ts',
    'org.opencontainers.image.version': VERSION,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  },
}

export async function writeImage(options: ImageOptions = {}): Promise<WrittenImage & { output: string; tag: string }> {
  const { output = join(ROOT, 'dist', 'images', `toolhive-ts-${VERSION}.tar`), tag = `toolhive-ts:${VERSION}` } = options
  mkdirSync(dirname(output), { recursive: true })
  const written = await writeImageArchive(output, { tags: [tag], files: await imageFiles(), config: imageConfig })
  return { ...written, output, tag }
}

export async function imageFiles(): Promise<TarEntry[]> {
  if (process.platform !== 'linux') throw new Error('the image takes Node and its libraries from this machine, which must run Linux')
  const programs = await bundledProgramFiles(appPrograms())
  const names = appPrograms().map(({ name }) => name)
  return [
    ...nodeRuntimeFiles(join(ROOT, 'node_modules/.bin/node')),
    ...programs,
    ...(await compileCacheFiles(names, programs)),
    file(`${DOC_FOLDER}/LICENSE`, join(ROOT, 'LICENSE')),
    file(`${DOC_FOLDER}/LICENSE-node`, nodeLicence()),
  ]
}

/** Of Node and all that is built into it. */
function nodeLicence(): string {
  return join(dirname(dirname(realpathSync(join(ROOT, 'node_modules/.bin/node')))), 'LICENSE')
}

/** Every app that has a command and a main module. */
export function appPrograms(root = ROOT): BundledProgram[] {
  const found = readdirSync(join(root, 'apps')).flatMap((app) => {
    const [manifest, entry] = [join(root, 'apps', app, 'package.json'), `apps/${app}/src/main.ts`]
    if (!existsSync(manifest) || !existsSync(join(root, entry))) return []
    const { bin = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin?: Record<string, string> }
    return Object.keys(bin).map((name) => ({ name, entry }))
  })
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

if (import.meta.main) {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { tag: text, output: text, layer: text } })
  const started = performance.now()
  const done = (size: number) => `${(size / 1e6).toFixed(0)} MB, ${((performance.now() - started) / 1000).toFixed(1)} s`
  if (values.layer !== undefined) {
    const { sha256, size } = await writeTar(resolve(values.layer), await imageFiles())
    console.log(`${resolve(values.layer)} sha256:${sha256} (${done(size)})`)
  } else {
    const image = await writeImage({
      ...(values.tag !== undefined && { tag: values.tag }),
      ...(values.output !== undefined && { output: resolve(values.output) }),
    })
    console.log(`${image.output}\n${image.tag} ${image.id} (${done(image.size)})`)
  }
}
