// Bundles an app when its sources changed, and says where the bundle is. What users start runs bundles: 200 TypeScript files cost
// 520 ms and 94 MB to load, bundled 52 ms and 42 MB. Plain JavaScript, so that a bin can import it on any Node and say clearly
// what is missing. Comments and white space are left out, names are not: V8 keeps the text of a program as long as it runs, with two
// bytes for every character as soon as one of them is not ASCII, as in comments of a dependency. Traces name the lines of the sources
// (source-lines.mjs). Beside a bundle lie its parts, its map and the licence texts of the packages in it. A part holds what an `import()`
// or, for undici's parsers, a `require()` asks for: its text is neither read nor kept before.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { execWithMemorySettings } from './memory-exec.mjs'
import { noticesText, packageFolders } from './notices.mjs'
import { forgetFirstStart, isTooOld, runOnPackagedNode } from './packaged-node.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const thisFile = fileURLToPath(import.meta.url)
const noticesFile = fileURLToPath(new URL('notices.mjs', import.meta.url))
const sourceLines = fileURLToPath(new URL('source-lines.mjs', import.meta.url))

/**
 * Starts an app from its bundle.
 * @param {string} entry path of the main module below the repository, such as `apps/cli/src/main.ts`
 */
export async function runBundled(entry) {
  if (isTooOld()) return runOnPackagedNode()
  forgetFirstStart()
  if (process.argv[2] === 'up') execWithMemorySettings()
  const bundle = await ensureBundle(entry, () => sayBuilding())
  // V8's code cache, made by the first run. It holds what that run came to call, so the platform has one of its own.
  nodeModule.enableCompileCache(join(compileCache, process.argv[2] === 'up' ? 'up' : 'commands'))
  await import(pathToFileURL(bundle).href)
}

/** Only to people who wait: what other commands print is read by programs. */
function sayBuilding() {
  if (process.stderr.isTTY || (process.argv[2] === 'up' && !process.argv.includes('--bare'))) process.stderr.write('Building thv …\n')
}

/** For programs that are started from their bundles, as NODE_COMPILE_CACHE. */
export const compileCache = join(root, 'dist', 'compile-cache')

/**
 * @param {string} entry path of the main module below the repository
 * @param {() => void} [onBuild] called when it must be built, which takes seconds on a busy machine
 * @returns {Promise<string>} path of the bundle, fresh
 */
export async function ensureBundle(entry, onBuild) {
  const name = entry.replace(/\.ts$/, '').replaceAll('/', '-')
  const outFile = join(root, 'dist', `${name}.mjs`)
  const inputsFile = join(root, 'dist', `${name}.inputs.json`)
  if (bundleParts(outFile)?.every((part) => existsSync(part)) && isFresh(outFile, inputsFile)) return outFile
  onBuild?.()

  const began = Date.now()
  const result = await bundled(entry, name)
  const inputs = [
    thisFile,
    noticesFile,
    ...result.parsers.map(({ source }) => source),
    ...Object.keys(result.metafile.inputs)
      .filter((path) => !path.startsWith('required:'))
      .map((path) => resolve(root, path)),
  ]
  mkdirSync(dirname(outFile), { recursive: true })
  replaceFile(noticesOf(outFile), noticesText(packageFolders(inputs), { root, isShipped: entry.startsWith('apps/') }))
  for (const { source, part } of result.parsers) replaceFile(part, readFileSync(source))
  // The entry last: a start finds all parts.
  for (const file of result.outputFiles.toSorted((a, b) => Number(a.path === outFile) - Number(b.path === outFile)))
    replaceFile(file.path, file.path.endsWith('.mjs') ? asciiOnly(file.text) : file.contents)
  const parts = [...result.outputFiles.map(({ path }) => path), ...result.parsers.map(({ part }) => part)].filter(
    (path) => /\.[cm]js$/.test(path) && path !== outFile,
  )
  replaceFile(partsFileOf(outFile), JSON.stringify(parts.map((path) => basename(path))))
  removeOldParts(name, parts)
  const stamps = inputs.map(stampOf)
  // A source that was saved meanwhile may not be in the bundle as it is now: then the next start bundles again.
  if (isSettled(stamps, began)) writeInputs(inputsFile, { inputs, stamps, hash: hashOf(inputs) })
  else rmSync(inputsFile, { force: true })
  return outFile
}

/**
 * @param {string} bundle path of a bundle
 * @returns {string} path of the licence texts of the packages in it
 */
export function noticesOf(bundle) {
  return `${bundle}.NOTICES.txt`
}

/**
 * @param {string} bundle path of a bundle
 * @returns {string[] | undefined} paths of the files beside it that it may load; undefined: it is not built yet
 */
export function bundleParts(bundle) {
  const file = partsFileOf(bundle)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).map((name) => join(dirname(bundle), name)) : undefined
}

function partsFileOf(bundle) {
  return bundle.replace(/\.mjs$/, '.parts.json')
}

/** Programs that run may still ask for the parts that they were built with, so these stay for a day. */
const OLD_PARTS_KEPT_MS = 24 * 60 * 60_000

function removeOldParts(name, parts) {
  const folder = join(root, 'dist')
  const kept = new Set(parts.map((path) => basename(path)))
  for (const file of readdirSync(folder)) {
    const [, part] = /^(.+-[0-9A-Z]{8}\.mjs)(?:\.map|\.LEGAL\.txt)?$/.exec(file) ?? []
    if (part?.slice(0, -13) !== name || kept.has(part)) continue
    const stat = statSync(join(folder, file), { throwIfNoEntry: false })
    if (stat && stat.mtimeMs < Date.now() - OLD_PARTS_KEPT_MS) rmSync(join(folder, file), { force: true })
  }
}

/** Characters that esbuild has not escaped are in regular expressions, where this means the same. One character would double the text in memory. */
function asciiOnly(program) {
  return program.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** esbuild's process would stay as long as ours, with 170 MB: it ends with the last build under way. */
async function bundled(entry, name) {
  const { build, stop } = createRequire(import.meta.url)('esbuild')
  const parsers = new Map()
  building++
  try {
    const result = await build({
      entryPoints: { [name]: join(root, entry) },
      absWorkingDir: root,
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node24',
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: 160,
      sourcemap: 'linked',
      sourcesContent: false,
      legalComments: 'linked',
      logLevel: 'silent',
      splitting: true,
      outdir: join(root, 'dist'),
      outExtension: { '.js': '.mjs' },
      chunkNames: `${name}-[hash]`,
      inject: [sourceLines],
      plugins: [leanUndici, leanHttp, leanTypebox, parsersApart(parsers), namesKept],
      banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    })
    return { ...result, parsers: [...parsers.values()] }
  } finally {
    building--
    if (building === 0) await stop()
  }
}

let building = 0

/**
 * An import of node:http reads all that it exports, and that of WebSocket loads the undici inside Node, for fetch and all: some
 * megabytes that no program of ours has use for. `require` reads nothing.
 */
const leanHttp = {
  name: 'lean-http',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node:http', namespace: 'required' } : undefined,
    )
    onLoad({ filter: /^node:http$/, namespace: 'required' }, () => ({ contents: "module.exports = require('node:http')" }))
  },
}

/** oidc-provider files its records under the names of its classes, which `minifySyntax` would drop. */
const namesKept = {
  name: 'names-kept',
  setup({ onLoad, esbuild }) {
    onLoad({ filter: /[\\/]node_modules[\\/]oidc-provider[\\/]lib[\\/].*\.js$/ }, async ({ path }) => {
      const options = {
        loader: 'js',
        keepNames: true,
        target: 'node24',
        sourcemap: 'inline',
        sourcefile: basename(path),
        sourcesContent: false,
      }
      const { code } = await esbuild.transform(readFileSync(path, 'utf8'), options)
      return { contents: code, loader: 'js' }
    })
  },
}

/** For our own imports only; a dependency's get what they ask for, and so do benchmarks. */
const leanUndici = {
  name: 'lean-undici',
  setup({ onResolve }) {
    onResolve({ filter: /^undici$/ }, ({ importer }) =>
      /^(?:apps|packages)[\\/](?!.*node_modules)/.test(relative(root, importer))
        ? { path: join(root, 'scripts', 'lean-undici.mjs') }
        : undefined,
    )
  },
}

/** Its modules do nothing but define. It does not say so, and would be in every bundle that has a file with a schema, used or not. */
const leanTypebox = {
  name: 'lean-typebox',
  setup(build) {
    build.onResolve({ filter: /^typebox(?:\/|$)/ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (pluginData === leanTypebox) return undefined
      const found = await build.resolve(path, { kind, importer, resolveDir, pluginData: leanTypebox })
      return { ...found, sideEffects: false }
    })
  },
}

/**
 * undici has four HTTP parsers, each 75 KB of WebAssembly as text, and requires one of them at its first connection. They stay files of
 * their own, named by their contents.
 */
function parsersApart(found) {
  return {
    name: 'parsers-apart',
    setup({ onResolve }) {
      onResolve({ filter: /(?:llhttp\/llhttp(?:_simd)?-wasm|milo\/(?:no-)?simd)\.js$/ }, ({ path, importer, kind }) => {
        if (kind !== 'require-call') return undefined
        const source = join(dirname(importer), path)
        const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 8)
        const file = `undici-${basename(source, '.js')}-${hash}.cjs`
        found.set(source, { source, part: join(root, 'dist', file) })
        return { path: `./${file}`, external: true }
      })
    },
  }
}

/** By size and times of the sources; where these differ, as in a checkout that was moved or reinstalled, by their contents. */
function isFresh(outFile, inputsFile) {
  if (!existsSync(outFile) || !existsSync(inputsFile)) return false
  const { inputs, stamps, hash } = JSON.parse(readFileSync(inputsFile, 'utf8'))
  const paths = inputs.map((path) => join(root, path))
  const now = Date.now()
  const seen = paths.map(stampOf)
  if (seen.includes(undefined)) return false
  if (stamps !== undefined && seen.every((stamp, index) => stamp === stamps[index])) return true
  if (hashOf(paths) !== hash) return false
  if (isSettled(seen, now)) writeInputs(inputsFile, { inputs: paths, stamps: seen, hash })
  return true
}

/** Size, time of the last change of the contents, and that of anything else; undefined without the file. */
function stampOf(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat && `${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`
}

/** The clock of file systems goes in ticks: what was saved just now could be saved again without getting another time. */
const TICK_MS = 20

function isSettled(stamps, since) {
  return stamps.every((stamp) => stamp !== undefined && Number(stamp.split(' ')[1]) < since - TICK_MS)
}

function writeInputs(file, { inputs, stamps, hash }) {
  replaceFile(file, JSON.stringify({ inputs: inputs.map((path) => relative(root, path)), stamps, hash }))
}

function hashOf(paths) {
  const hash = createHash('sha256')
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
