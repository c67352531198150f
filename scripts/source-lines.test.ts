import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { expect, it } from 'vitest'

const PROGRAM = `
const make = (code: string): string | undefined => Object.assign(new Error('failed'), { code }).stack
console.log(JSON.stringify([make('E_OWN'), make('UND_ERR_INFO')]))
`

it('the stack of an error names the lines of the sources, except for errors of undici, which every idle connection makes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'thv-lines-'))
  try {
    const outfile = join(folder, 'out', 'bundle.mjs')
    writeFileSync(join(folder, 'real.ts'), PROGRAM)
    buildSync({
      ...{ entryPoints: [join(folder, 'real.ts')], bundle: true, format: 'esm', platform: 'node', sourcemap: 'linked', outfile },
      inject: [fileURLToPath(new URL('source-lines.mjs', import.meta.url))],
    })
    const { stdout } = await promisify(execFile)(process.execPath, [outfile], { timeout: 60_000 })
    const [own, ofUndici] = JSON.parse(stdout) as string[]
    expect(own).toMatch(/^Error: failed\n {4}at make \(real\.ts:2:\d+\)/)
    expect(ofUndici).toMatch(/^Error: failed\n {4}at make \(file:\S+\/bundle\.mjs:\d+:\d+\)/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
