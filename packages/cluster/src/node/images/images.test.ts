import { utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { createProcessGuard, type ProcessGuard } from '@thv/programs/process-guard'
import { memoryLog, type TestFolder, testFolder } from '@thv/programs/testing/program-fixtures'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { imageMapFile, readImageMap } from './image-map.ts'
import { createImageResolver, type ImageResolver, type ImageResolverOptions } from './image-resolver.ts'

const never = new AbortController().signal
const OWN = { repository: 'toolhive-ts', programs: { 'thv-operator': ['node', 'o.mjs'], thv: ['node', 't.mjs'] }, main: 'thv' }

describe('images as programs', () => {
  let folder: TestFolder
  let guard: ProcessGuard
  beforeEach(async () => {
    folder = await testFolder()
    guard = createProcessGuard(() => {})
  })
  afterEach(async () => {
    await guard.close()
    await folder[Symbol.asyncDispose]()
  })

  function resolver(more: Partial<ImageResolverOptions> = {}): ImageResolver {
    const map = imageMapFile(join(folder.path, 'images.yaml'))
    return createImageResolver({
      dataDir: join(folder.path, 'data'),
      env: { PATH: folder.path, PIP_CONFIG_FILE: '/dev/null', UV_NO_CONFIG: '1' },
      guard,
      log: memoryLog(),
      own: [OWN],
      map,
      signal: never,
      ...more,
    })
  }
  const refusal = (image: string, signal = never) =>
    resolver()
      .resolve(image, signal)
      .then(
        () => 'it was found',
        (error: unknown) => (isThvError(error, 'image_unavailable') ? error.message : error),
      )

  it.each(['toolhive-ts', 'toolhive-ts:0.1.0', 'toolhive-ts:9@sha256:abc'])(
    'runs our own image from this repository: %s',
    async (image) => {
      expect(await resolver().resolve(image, never)).toMatchObject({ entrypoint: ['node', 't.mjs'], own: true, programs: OWN.programs })
    },
  )

  it.each(['ghcr.io/x/toolhive-ts:1', 'localhost:5000/fetch', 'toolhive-ts2:1'])('says what to write in place of %s', async (image) => {
    const message = await refusal(image)
    expect(message).toContain('npx://PACKAGE@VERSION')
    expect(message).toContain(join(folder.path, 'images.yaml'))
  })

  it('installs a package of npm once for many callers', async () => {
    const install = `const fs = require('node:fs'); fs.appendFileSync(${JSON.stringify(join(folder.path, 'calls'))}, 'x')
fs.mkdirSync('node_modules/server/', { recursive: true })
fs.writeFileSync('node_modules/server/package.json', JSON.stringify({ version: '1.0.0', bin: 'cli.js' }))
fs.writeFileSync('node_modules/server/cli.js', '')\n`
    await folder.write('npm', `#!${process.execPath}\n${install}`, 0o755)
    const one = resolver()
    const programs = await Promise.all([1, 2, 3].map(() => one.resolve('npx://server@1.0.0', never)))
    expect(programs[0]?.entrypoint).toEqual([process.execPath, join(folder.path, 'data/npm/server@1.0.0/node_modules/server/cli.js')])
    expect(programs[2]).toEqual(programs[0])
    expect(programs[0]).toMatchObject({ own: false, imageId: 'npx://server@1.0.0' })
  })

  it('says how to install uv, and which package has no version', async () => {
    expect(await refusal('uvx://mcp-server-time@1.0.0')).toContain('pip install uv')
    expect(await refusal('npx://server')).toContain('the package server needs a version')
    expect(await refusal('exec:///nowhere')).toContain('/nowhere is not an executable file')
  })

  it('lets a caller go while the install goes on', async () => {
    await folder.write('npm', `#!/bin/sh\nsleep 30\n`, 0o755)
    const installs = new AbortController()
    const stop = new AbortController()
    const leaving = resolver({ env: { PATH: `${folder.path}:/bin:/usr/bin` }, signal: installs.signal }).resolve(
      'npx://slow@1.0.0',
      stop.signal,
    )
    setTimeout(() => stop.abort(new Error('gone')), 50)
    await expect(leaving).rejects.toThrow('gone')
    installs.abort()
  })

  it('runs what the file of the data folder says, and reads it again when it changes', async () => {
    const one = resolver()
    const image = 'ghcr.io/acme/fetch:1.2'
    await expect(one.resolve(image, never)).rejects.toThrow('container image')
    const file = await folder.write('images.yaml', 'images:\n- match: ghcr.io/acme/*:1.*\n  command: [node, server.js]\n  env: {A: b}\n')
    expect(await one.resolve(image, never)).toMatchObject({ entrypoint: ['node', 'server.js'], env: { A: 'b' }, own: false })
    await folder.write('images.yaml', 'images: 3\n')
    await utimes(file, 1, 1)
    await expect(one.resolve(image, never)).rejects.toThrow('must hold a list called images')
  })
})

describe('readImageMap', () => {
  const entry = (text: string) => () => readImageMap(text, 'images.yaml')
  it.each([
    ['images: [', 'images.yaml: is not YAML'],
    ['[]', 'must hold a list called images'],
    ['images: []\nother: 1', 'other is not known'],
    ['images: [3]', 'images[0] must have match and command'],
    ['images: [{match: a}]', 'images[0].command must be a list of texts'],
    ['images: [{match: a, command: []}]', 'images[0].command must be a list'],
    ['images: [{match: a, command: [1]}]', 'images[0].command must be a list'],
    ['images: [{command: [a]}]', 'images[0].match must be an image'],
    ['images: [{match: a, command: [a], env: {A: 1}}]', 'images[0].env must map'],
    ['images: [{match: a, command: [a], args: []}]', 'images[0].args is not known'],
  ])('refuses %s', (text, message) => {
    expect(entry(text)).toThrow(message)
  })
  it('takes an empty file for an empty map', () => expect(readImageMap('', 'f')).toEqual([]))
})
