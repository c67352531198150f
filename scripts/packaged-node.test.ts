import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const THV = fileURLToPath(new URL('../apps/cli/bin/thv.js', import.meta.url))
const MODULE = fileURLToPath(new URL('./packaged-node.mjs', import.meta.url))
/** This Node, which takes itself for an old one. */
const OLD = ['--import', "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.1.0'})"]

async function ended(child: ChildProcess, input = '') {
  const [out, err, [code, signal]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
    child.stdin?.end(input),
  ])
  return { out, err, code, signal }
}

describe('a launcher on an old Node', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'thv-node-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  /** A launcher whose packaged Node is this shell script. */
  function launch(script: string, ...args: string[]): ChildProcess {
    const node = join(folder, 'node')
    writeFileSync(node, `#!/bin/sh\n${script}\n`)
    chmodSync(node, 0o755)
    const main = join(folder, 'main.mjs')
    writeFileSync(main, `import { runOnPackagedNode } from ${JSON.stringify(MODULE)}\nawait runOnPackagedNode(${JSON.stringify(node)})`)
    return spawn(process.execPath, [main, ...args])
  }

  it('runs the command on the packaged Node', async () => {
    expect(await ended(spawn(process.execPath, [...OLD, THV, '--version']))).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    })
  })

  it('passes arguments, input, output and the exit code', async () => {
    const child = launch('shift; printf "%s|" "$@"; cat; echo wrong >&2; exit 7', 'a b', '--c')
    expect(await ended(child, 'typed')).toEqual({ out: 'a b|--c|typed', err: 'wrong\n', code: 7, signal: null })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('passes %s on, and ends by it when the command does', async (signal) => {
    const child = launch('echo started; exec sleep 600')
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    child.kill(signal)
    expect(await ended(child)).toMatchObject({ code: null, signal })
  })

  it('says what to do where there is no packaged Node, or it is too old itself', async () => {
    const main = join(folder, 'main.mjs')
    writeFileSync(main, `import { runOnPackagedNode } from ${JSON.stringify(MODULE)}\nawait runOnPackagedNode('/nowhere/node')`)
    const message = /^thv: Node 24 or newer is required; this is v\S+\. Run "npm ci" in the repository to install one\.\n$/
    expect(await ended(spawn(process.execPath, [main]))).toMatchObject({ code: 1, err: expect.stringMatching(message) })
    const env = { ...process.env, NODE_OPTIONS: OLD.join(' ') }
    expect(await ended(spawn(process.execPath, [THV], { env }))).toMatchObject({ code: 1, err: expect.stringMatching(message) })
  })
})
