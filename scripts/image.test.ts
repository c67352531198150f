import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { appPrograms, imageConfig, imageFiles } from './image.ts'
import { ROOT } from './run.ts'

test('every app with a command and a main module is in the image', () => {
  expect(appPrograms()).toEqual(
    expect.arrayContaining([
      { name: 'thv', entry: 'apps/cli/src/main.ts' },
      { name: 'thv-operator', entry: 'apps/operator/src/main.ts' },
      { name: 'thv-proxyrunner', entry: 'apps/proxyrunner/src/main.ts' },
    ]),
  )
})

test('an app without a command, or not yet with a main module, is not', () => {
  const root = mkdtempSync(join(tmpdir(), 'image-test-'))
  const app = (name: string, bin: object | undefined, main: boolean) => {
    mkdirSync(join(root, 'apps', name, 'src'), { recursive: true })
    writeFileSync(join(root, 'apps', name, 'package.json'), JSON.stringify({ bin }))
    if (main) writeFileSync(join(root, 'apps', name, 'src', 'main.ts'), '')
  }
  app('a', { second: 'x', first: 'x' }, true)
  app('b', undefined, true)
  app('c', { third: 'x' }, false)
  try {
    expect(appPrograms(root).map(({ name }) => name)).toEqual(['first', 'second'])
  } finally {
    rmSync(root, { recursive: true })
  }
})

test('the Dockerfile describes the same image', () => {
  const text = readFileSync(join(ROOT, 'deploy/images/Dockerfile'), 'utf8').replaceAll('\\\n', ' ')
  const version = /^ARG VERSION=(\S+)$/m.exec(text)?.[1] ?? ''
  const last = text.slice(text.lastIndexOf('\nFROM ')).replaceAll(/\$\{VERSION\}/g, version)
  const all = (instruction: string) => [...last.matchAll(new RegExp(`^${instruction} (.+)$`, 'gm'))].map((match) => match[1] ?? '')
  expect(all('ENV')).toEqual(imageConfig.Env)
  expect(all('LABEL')).toEqual(Object.entries(imageConfig.Labels ?? {}).map(([name, value]) => `${name}=${value}`))
  expect(all('USER')).toEqual([imageConfig.User])
  expect(all('WORKDIR')).toEqual([imageConfig.WorkingDir])
  expect(all('CMD').map((value) => JSON.parse(value) as unknown)).toEqual([imageConfig.Cmd])
  expect(all('FROM')).toEqual(['scratch'])
  for (const [, base] of text.matchAll(/^FROM (\S+)/gm)) expect(base).toMatch(/^scratch$|:\d+\.\d+\.\d+[\w.-]*\$\{NODE_DIGEST\}$/)
  expect(text).toMatch(/^ARG NODE_DIGEST=$/m)
})

test.runIf(process.platform === 'linux')(
  'the image has a compile cache that V8 accepts for every program',
  { timeout: 300_000 },
  async () => {
    const files = (await imageFiles()).filter(({ path }) => path.startsWith('app/'))
    const root = mkdtempSync(join(tmpdir(), 'image-test-'))
    try {
      for (const { path, content } of files) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(
          join(root, path),
          content.kind === 'file' ? readFileSync(content.source) : content.kind === 'bytes' ? content.bytes : '',
        )
      }
      const settings = Object.fromEntries((imageConfig.Env ?? []).map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))
      const cache = settings['NODE_COMPILE_CACHE'] ?? ''
      expect(readdirSync(join(root, cache))).toHaveLength(1)
      for (const { name } of appPrograms()) {
        const program = join(root, 'app', `${name}.mjs`)
        const env = { ...settings, PATH: process.env['PATH'], NODE_COMPILE_CACHE: join(root, cache), NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }
        const { stderr, stdout } = spawnSync(process.execPath, [program, '--help'], { env, encoding: 'utf8' })
        expect(`${stdout}${stderr}`).toContain(`V8 code cache for ESM file://${program} was accepted`)
        expect(`${stdout}${stderr}`).not.toMatch(/was rejected|not found|generating/)
      }
    } finally {
      rmSync(root, { recursive: true })
    }
  },
)
