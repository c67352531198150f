// Bundles an app when its sources changed, and says where the bundle is. What users start runs bundles: 200 TypeScript files cost
// 520 ms and 94 MB to load, bundled 52 ms and 42 MB. Plain JavaScript, so that a bin can import it on any Node and say clearly
// what is missing.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const OLDEST_NODE = 24

/**
 * Starts an app from its bundle.
 * @param {string} entry path of the main module below the repository, such as `apps/cli/src/main.ts`
 */
export async function runBundled(entry) {
  const major = Number(process.versions.node.split('.')[0])
  if (major < OLDEST_NODE) {
    console.error(
      `This needs Node ${OLDEST_NODE} or newer, and this is ${process.version}. In the repository, "npm ci" brings a suitable Node: use "npx ${basename(process.argv[1] ?? 'thv', '.js')}" there.`,
    )
    process.exit(1)
  }
  await import(pathToFileURL(await ensureBundle(entry)).href)
}

/**
 * @param {string} entry path of the main module below the repository
 * @returns {Promise<string>} path of the bundle, fresh
 */
export async function ensureBundle(entry) {
  const name = entry.replace(/\.ts$/, '').replaceAll('/', '-')
  const outFile = join(root, 'dist', `${name}.mjs`)
  const inputsFile = join(root, 'dist', `${name}.inputs.json`)
  if (isFresh(outFile, inputsFile)) return outFile

  const began = Date.now()
  const result = await bundled(entry, outFile)
  const inputs = Object.keys(result.metafile.inputs).map((path) => resolve(root, path))
  mkdirSync(dirname(outFile), { recursive: true })
  for (const file of result.outputFiles) replaceFile(file.path, file.contents)
  // A source that was saved meanwhile may not be in the bundle as it is now: then the next start bundles again.
  const hasChanged = inputs.some((path) => statSync(path).mtimeMs >= began)
  if (hasChanged) rmSync(inputsFile, { force: true })
  else replaceFile(inputsFile, JSON.stringify({ inputs: inputs.map((path) => relative(root, path)), hash: hashOf(inputs) }))
  return outFile
}

/** esbuild's process would stay as long as ours, with 170 MB: it ends with the last build under way. */
async function bundled(entry, outFile) {
  const { build, stop } = createRequire(import.meta.url)('esbuild')
  building++
  try {
    return await build({
      entryPoints: [join(root, entry)],
      absWorkingDir: root,
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node24',
      legalComments: 'linked',
      logLevel: 'silent',
      outfile: outFile,
      banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    })
  } finally {
    building--
    if (building === 0) await stop()
  }
}

let building = 0

function isFresh(outFile, inputsFile) {
  if (!existsSync(outFile) || !existsSync(inputsFile)) return false
  const { inputs, hash } = JSON.parse(readFileSync(inputsFile, 'utf8'))
  const paths = inputs.map((path) => join(root, path))
  return paths.every((path) => existsSync(path)) && hashOf(paths) === hash
}

function hashOf(paths) {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)))
  for (const path of paths) hash.update(path).update('\0').update(readFileSync(path))
  return hash.digest('hex')
}

/** Two starts at once must not see half a file. */
function replaceFile(path, contents) {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    writeFileSync(temporary, contents)
    renameSync(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
}
