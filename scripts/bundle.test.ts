import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import undici from 'undici'
import { describe, expect, test } from 'vitest'
import { bundleParts, ensureBundle, noticesOf } from './bundle.mjs'
import { appPrograms, imageFiles } from './image.ts'
import * as lean from './lean-undici.mjs'
import { noticeOf, packageFolders } from './notices.mjs'
import { ROOT } from './run.ts'

const BUNDLING_MS = 300_000

/** Error output of a program that ends by an error. */
function traceOf(args: readonly string[], input?: string): string {
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', input, timeout: BUNDLING_MS })
  expect(status, stderr).toBe(1)
  return stderr
}

test('a trace of a bundle names the line of the source, and so do those of its causes', { timeout: BUNDLING_MS }, async () => {
  const printed = traceOf([await ensureBundle('scripts/testing/throwing.ts')])
  expect(printed).toMatch(/^TypeError: on line 8\n {4}at thrower \(scripts\/testing\/throwing\.ts:8:\d+\)\n/m)
  for (const inner of ['AggregateError: cause', 'RangeError: inside'])
    expect(printed).toMatch(new RegExp(`${inner}\\n +at thrower \\(scripts/testing/throwing\\.ts:8:\\d+\\)\\n`))
})

test('a trace of a part names the line of the source', { timeout: BUNDLING_MS }, async () => {
  const bundle = await ensureBundle('scripts/testing/throwing-part.ts')
  expect(bundleParts(bundle)).not.toEqual([])
  expect(traceOf([bundle])).toMatch(/^TypeError: on line 8\n {4}at thrower \(scripts\/testing\/throwing\.ts:8:\d+\)\n/m)
})

test('a bundle without one of its parts is built again', { timeout: BUNDLING_MS }, async () => {
  const [part = ''] = bundleParts(await ensureBundle('scripts/testing/throwing-part.ts')) ?? []
  rmSync(part)
  await ensureBundle('scripts/testing/throwing-part.ts')
  expect(existsSync(part)).toBe(true)
})

test('a trace without the map is the one of the bundle', { timeout: BUNDLING_MS }, async () => {
  const bundle = await ensureBundle('scripts/testing/throwing.ts')
  const text = readFileSync(bundle, 'utf8')
  expect(traceOf(['--input-type=module'], text)).toMatch(/^TypeError: on line 8\n {4}at thrower \((?!scripts).+:\d+:\d+\)\n/m)
})

describe('licences', () => {
  test.each(appPrograms().map(({ name, entry }) => [name, entry] as const))(
    'the bundle of %s carries the licence texts of all packages inside',
    { timeout: BUNDLING_MS },
    async (_name, entry) => {
      const bundle = await ensureBundle(entry)
      const { inputs } = JSON.parse(readFileSync(bundle.replace(/mjs$/, 'inputs.json'), 'utf8')) as { inputs: string[] }
      const folders = packageFolders(inputs.map((path) => join(ROOT, path)))
      const inside = inputs.filter((path) => path.includes('node_modules'))
      expect(folders.length).toBeGreaterThan(0)
      expect(inside.filter((path) => !folders.some((folder) => join(ROOT, path).startsWith(`${folder}/`)))).toEqual([])
      const notices = readFileSync(noticesOf(bundle), 'utf8')
      for (const folder of folders) {
        const { name, version, text } = noticeOf(folder, ROOT)
        expect(text.length, name).toBeGreaterThan(200)
        expect(notices).toContain(`${name} ${version} (`)
        expect(notices).toContain(text)
      }
    },
  )

  test.runIf(process.platform === 'linux')('the image carries them all, and that of Node', { timeout: BUNDLING_MS }, async () => {
    const paths = (await imageFiles()).map(({ path }) => path)
    const programs = appPrograms().map(({ name }) => name)
    for (const name of programs)
      expect(paths).toEqual(expect.arrayContaining([`app/${name}.mjs.map`, `usr/share/doc/toolhive-ts/NOTICES-${name}.txt`]))
    const others = ['LICENSE', 'LICENSE-node', 'NOTICES-@cedar-policy-cedar-wasm.txt']
    expect(paths).toEqual(expect.arrayContaining(others.map((name) => `usr/share/doc/toolhive-ts/${name}`)))
  })
})

test('the lean undici exports the same objects as undici', () => {
  expect(Object.keys(lean).toSorted()).toEqual(['Agent', 'Pool', 'buildConnector'])
  for (const [name, value] of Object.entries(lean)) expect(value, name).toBe(undici[name as keyof typeof undici])
  const { request, stream, pipeline, connect, upgrade } = undici.Dispatcher.prototype
  for (const method of [request, stream, pipeline, connect, upgrade]) expect(method).toBeTypeOf('function')
})
