import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bundledProgramFiles } from './bundled-program.ts'
import { type Image, writeImageArchive } from './image-archive.ts'
import { nodeRuntimeFiles, parseLdd, text } from './node-runtime.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'image-test-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const image: Image = { tags: ['example.test/tools/x:1'], files: [text('hello', 'world')], config: { User: '1000', Cmd: ['/hello'] } }

describe('writeImageArchive', () => {
  test('the manifest names the configuration and the layer by their own digests', async () => {
    const { id } = await writeImageArchive(join(root, 'x.tar'), image)
    const read = (name: string) => execFileSync('tar', ['-xOf', join(root, 'x.tar'), name])
    const [manifest] = JSON.parse(read('manifest.json').toString()) as [{ Config: string; Layers: string[]; RepoTags: string[] }]
    expect(manifest.RepoTags).toEqual(image.tags)
    expect(`sha256:${sha256(read(manifest.Config))}`).toBe(id)
    const layer = sha256(read(manifest.Layers[0] ?? ''))
    expect(JSON.parse(read(manifest.Config).toString())).toMatchObject({
      os: 'linux',
      config: { User: '1000', Cmd: ['/hello'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
    })
    expect(readdirSync(root)).toEqual(['x.tar'])
  })

  test('the same image gives the same bytes, another one another id', async () => {
    const one = await writeImageArchive(join(root, '1.tar'), image)
    const two = await writeImageArchive(join(root, '2.tar'), image)
    expect(two).toEqual(one)
    expect(readFileSync(join(root, '1.tar')).equals(readFileSync(join(root, '2.tar')))).toBe(true)
    expect((await writeImageArchive(join(root, '3.tar'), { ...image, files: [text('hello', 'all')] })).id).not.toBe(one.id)
  })

  test.each(['x:latest', 'example.test/x:latest', 'x', 'X:1', 'x:', 'a b:1'])('refuses the name %s', async (tag) => {
    await expect(writeImageArchive(join(root, 'x.tar'), { ...image, tags: [tag] })).rejects.toThrow(/latest|not an image name/)
    expect(readdirSync(root)).toEqual([])
  })

  test.each(['x:1', 'thv.test/pause:1', 'localhost:5000/a/b:v1.2'])('accepts the name %s', async (tag) => {
    await writeImageArchive(join(root, 'x.tar'), { ...image, tags: [tag] })
    expect(readdirSync(root)).toEqual(['x.tar'])
  })

  test('a failure leaves no file behind', async () => {
    const files = [{ path: 'x', content: { kind: 'file', source: join(root, 'absent') } } as const]
    await expect(writeImageArchive(join(root, 'x.tar'), { ...image, files })).rejects.toThrow('ENOENT')
    expect(readdirSync(root)).toEqual([])
  })
})

describe('the content of an image', () => {
  test('the libraries that ldd names, the loader too; a missing one is an error', () => {
    const printed = `\tlinux-vdso.so.1 (0x00007fe)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fecd5a40000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fecd5b42000)\n`
    expect(parseLdd(printed)).toEqual(['/lib/x86_64-linux-gnu/libm.so.6', '/lib64/ld-linux-x86-64.so.2'])
    expect(() => parseLdd('\tlibx.so => not found\n')).toThrow('libx.so')
  })

  test.runIf(process.platform === 'linux')('Node with its libraries, authorities, user 1000 and a folder for temporary files', () => {
    const files = nodeRuntimeFiles(process.execPath)
    const paths = files.map(({ path }) => path)
    expect(paths).toEqual(expect.arrayContaining(['usr/local/bin/node', 'etc/ssl/certs/ca-certificates.crt', 'etc/passwd', 'home/thv']))
    expect(paths.some((path) => /libc\.so/.test(path))).toBe(true)
    expect(files.find(({ path }) => path === 'tmp')?.mode).toBe(0o1777)
  })

  test('a program is a file that the system starts with Node, with the package that it leaves outside', async () => {
    const files = await bundledProgramFiles([{ name: 'thv-operator', entry: 'apps/operator/src/main.ts' }])
    const program = files.find(({ path }) => path === 'app/thv-operator.mjs')
    expect(program?.mode).toBe(0o755)
    expect(program?.content.kind === 'bytes' && String(program.content.bytes).startsWith('#!/usr/local/bin/node\n')).toBe(true)
    expect(files).toContainEqual({ path: 'usr/local/bin/thv-operator', content: { kind: 'link', target: '/app/thv-operator.mjs' } })
    expect(files.map(({ path }) => path)).toContain('app/node_modules/@cedar-policy/cedar-wasm/nodejs/cedar_wasm_bg.wasm')
  })
})

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
