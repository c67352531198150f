import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureShell } from '@thv/testkit/shells/ensure-shell'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runThv } from '../testing/run-thv.ts'

/* The scripts in the real shells, which are installed where they are missing. */

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-shells-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function written(shell: string): Promise<string> {
  const path = join(folder, `thv.${shell}`)
  writeFileSync(path, (await runThv(['completion', shell])).out)
  return path
}

describe('fish', () => {
  let fish: string
  let file: string
  beforeAll(async () => {
    fish = await ensureShell('fish')
    file = await written('fish')
  }, 600_000)
  const offered = (line: string) =>
    execFileSync(fish, ['--no-config', '-c', `source ${file}; complete -C ${JSON.stringify(line)}`], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: folder },
    })
      .split('\n')
      .filter((each) => each !== '')
      .map((each) => each.split('\t')[0])

  it.each([
    ['thv lo', ['login', 'logout', 'logs']],
    ['thv get --field', ['--field-selector']],
    ['thv get -o y', ['yaml']],
    ['thv completion z', ['zsh']],
    ['thv list --all-n', ['--all-namespaces']],
  ])('%s', (line, expected) => {
    expect(offered(line)).toEqual(expected)
  })
})

describe('zsh', () => {
  let zsh: string
  let file: string
  beforeAll(async () => {
    zsh = await ensureShell('zsh')
    file = await written('zsh')
  }, 600_000)
  /** The words that the script passes to zsh's own completion functions; these need a line editor, so they are replaced by ones that print. */
  const given = (...words: string[]) =>
    execFileSync(
      zsh,
      [
        '-f',
        '-c',
        `autoload -Uz compinit; compinit -D -u; source ${file}; [[ $_comps[thv] = _thv ]] || exit 3
_describe() { print -rl -- \${(P)4} }; _arguments() { print -rl -- "$@" }
words=("$@"); CURRENT=$#; _thv`,
        'zsh',
        'thv',
        ...words,
      ],
      { encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: folder } },
    ).split('\n')

  it('offers commands with their descriptions', () => {
    expect(given('')).toEqual(
      expect.arrayContaining(['logs:print the logs of an MCP server and its proxy', 'list:list MCP servers with status and URL']),
    )
  })

  it('offers options and values of a command', () => {
    expect(given('get', '')).toEqual(expect.arrayContaining(['*-o[output format]:value:(wide yaml json name)', '*:file:_files']))
    expect(given('get', '')).toContain(
      '*--kubeconfig[kubeconfig of a cluster (default\\: the local platform, KUBECONFIG, ~/.kube/config)]:value:_files',
    )
    expect(given('completion', '')).toContain('1:value:(bash zsh fish)')
  })
})
