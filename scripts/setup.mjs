// Runs before start, test, verify, bench and soak. Plain JavaScript without dependencies, because it runs on whatever Node the
// machine has (20 or newer) before anything is installed. Does nothing when all is there.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { areInstalled } from './installed-packages.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = `${root}node_modules/.toolhive-setup`
const wanted = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .update(`${process.platform}-${process.arch}`)
  .digest('hex')

const isInstalled = existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted
if (!isInstalled) {
  // Somebody may have run "npm ci" by hand.
  if (areInstalled(root)) writeFileSync(stamp, wanted)
  else await install()
}

async function install() {
  const started = Date.now()
  const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`
  console.log('set-up: installing packages with npm ci (about 400 MB, with Node 26 for this project) …')
  // A failed install must not look like a finished one.
  rmSync(stamp, { force: true })
  // On a terminal one line that is written over; elsewhere a line now and then.
  const isTerminal = process.stdout.isTTY === true
  const show = () => process.stdout.write(isTerminal ? `\r\x1b[Kset-up: … ${elapsed()}` : `set-up: … ${elapsed()}\n`)
  const beat = setInterval(show, isTerminal ? 1_000 : 15_000)
  const failure = await npmCi()
  clearInterval(beat)
  if (isTerminal) process.stdout.write('\r\x1b[K')
  if (failure) {
    console.error(`set-up: npm ci failed (${failure}). Run "npm ci" by hand to see why, then try again.`)
    process.exit(1)
  }
  writeFileSync(stamp, wanted)
  console.log(`set-up: done in ${elapsed()}`)
}

/** Resolves to what went wrong, or nothing. */
function npmCi() {
  return new Promise((resolve) => {
    const child = spawn('npm', ['ci', '--loglevel=error', '--no-progress'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
    child.on('error', (error) => resolve(error.message))
    child.on('exit', (code, signal) => resolve(code === 0 ? undefined : `exit code ${code ?? signal}`))
  })
}
