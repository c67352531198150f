import { spawn } from 'node:child_process'
import { systemPath } from '../cluster/node/node-packages.ts'
import { runCommand } from '../cluster/process/run-command.ts'

/** Nothing of the user's or the system's configuration, and the same hashes everywhere. */
export const gitEnvironment: NodeJS.ProcessEnv = {
  PATH: systemPath,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
}

/** Debian's git, installed when it is missing. */
export async function ensureGit(): Promise<void> {
  const found = await git(['--version']).then(
    () => true,
    () => false,
  )
  if (found) return
  const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive' }
  // The lock of another apt-get is waited for.
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300']
  await runCommand('apt-get', [...wait, 'update'], { env, limitMs: 600_000 })
  await runCommand('apt-get', [...wait, 'install', '-y', '--no-install-recommends', 'git'], { env, limitMs: 600_000 })
}

/** Runs git to its end and returns what it wrote, without the last line break. */
export async function git(args: readonly string[], input?: string): Promise<string> {
  if (input === undefined) return (await runCommand('git', args, { env: gitEnvironment })).trimEnd()
  const child = spawn('git', args, { env: gitEnvironment, stdio: ['pipe', 'pipe', 'inherit'], timeout: 60_000, killSignal: 'SIGKILL' })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.stdin.on('error', reject)
    child.on('close', (code, signal) => (code === 0 ? resolve() : reject(new Error(`git ${args[0]} ended by ${signal ?? `code ${code}`}`))))
    child.stdin.end(input)
  })
  return Buffer.concat(chunks).toString().trimEnd()
}
