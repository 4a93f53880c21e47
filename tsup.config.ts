import { defineConfig } from 'tsup'
import manifest from './package.json' with { type: 'json' }

/** One entry a subpath. The build fails when this table and `exports` in package.json drift apart. */
const entry = {
  index: 'src/index.ts',
  sqlite: 'src/ledger/sqlite/index.ts',
  sessions: 'src/sessions/index.ts',
  journal: 'src/journal/index.ts',
  openviking: 'src/providers/openviking/index.ts',
  holographic: 'src/providers/holographic/index.ts',
  pool: 'src/pool/index.ts',
  shutdown: 'src/shutdown/index.ts',
  testing: 'src/testing/index.ts',
}

/** Files that are not imported by name: the thread of the SQLite ledger is started from the file beside it. */
const internal = { 'sqlite-worker': 'src/ledger/sqlite/worker.ts' }

const promised = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => (path === '.' ? 'index' : path.slice(2)))
const drifted = [
  ...promised.filter((name) => !(name in entry)),
  ...Object.keys(entry).filter((name) => !promised.includes(name)),
]
if (drifted.length > 0) throw new Error(`package.json exports and the tsup entries differ in: ${drifted.join(', ')}`)

export default defineConfig({
  entry: { ...entry, ...internal },
  format: 'esm',
  target: 'node20.19',
  platform: 'node',
  // Shared chunks keep one identity per class: `instanceof TidemarkError` holds across subpaths.
  splitting: true,
  dts: { compilerOptions: { noEmit: false } },
  sourcemap: true,
  clean: true,
  // `node:sqlite` must keep its prefix: there is no bare module of that name.
  removeNodeProtocol: false,
})
