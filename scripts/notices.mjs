// The licence texts of the packages inside a bundle, by the bundler's list of its inputs. Plain JavaScript, as bundle.mjs is.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const LICENCE_FILE = /^(licen[cs]e|copying|notice)([.-].*)?$/i

/**
 * @param {readonly string[]} paths files of packages, below node_modules; others are passed over
 * @returns {string[]} folders of the packages, sorted, each once
 */
export function packageFolders(paths) {
  const folders = paths.flatMap((path) => /^.*node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+(?=[\\/])/.exec(path)?.[0] ?? [])
  return [...new Set(folders)].sort()
}

/**
 * @param {readonly string[]} folders of packages
 * @param {{ root: string, isShipped?: boolean }} options the repository, whose own license is the text of Apache-2.0; whether every
 *   package must have a text (default), which the servers of the tests need not
 * @returns {string} one section for each package
 */
export function noticesText(folders, { root, isShipped = true }) {
  return folders.map((folder) => section(noticeOf(folder, root, isShipped))).join('\n')
}

/** Name, version, licence and its text. Throws where a package has none: it must not be shipped without. */
export function noticeOf(folder, root, isShipped = true) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim())
  const text =
    texts.length > 0
      ? texts.join('\n\n')
      : (fromReadme(folder) ?? fromSibling(name, folder) ?? (license === 'Apache-2.0' ? ownLicence(root) : undefined))
  if (!text && isShipped) throw new Error(`the package ${name} has no licence text: see ${folder}`)
  return { name, version, license: license ?? 'see below', text: text ?? 'The package has no license text.' }
}

/** Some packages have their licence in the README only, under a heading of its own. */
function fromReadme(folder) {
  const file = readdirSync(folder).find((name) => /^readme(\.md)?$/i.test(name))
  if (file === undefined) return undefined
  const [, text = ''] = readFileSync(join(folder, file), 'utf8').split(/^#+\s*licen[cs]e\s*$/im)
  const end = text.search(/^#+\s/m)
  const found = (end === -1 ? text : text.slice(0, end)).trim()
  return /copyright|permission is hereby granted/i.test(found) ? found : undefined
}

/** Packages whose repository has a license that their release leaves out: its copyright, and a package with the same text. */
const LEFT_OUT = { 'koa-compose': { copyright: 'Copyright (c) 2013 TJ Holowaychuk tj@apex.sh', sibling: 'koa' } }

function fromSibling(name, folder) {
  const known = LEFT_OUT[name]
  if (known === undefined) return undefined
  return readFileSync(join(folder, '..', known.sibling, 'LICENSE'), 'utf8')
    .trim()
    .replace(/^Copyright .*$/m, known.copyright)
}

function ownLicence(root) {
  return readFileSync(join(root, 'LICENSE'), 'utf8').trim()
}

function section({ name, version, license, text }) {
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n${'='.repeat(80)}\n\n${text}\n`
}
