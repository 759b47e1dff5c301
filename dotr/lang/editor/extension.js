// The extension of VS Code: starts `dotr lsp` for files of rules, and says so if it cannot.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { LANGUAGES, serverOptions } = require("./server");

let client;

async function activate(context) {
  const settings = vscode.workspace.getConfiguration("dotr");
  client = new LanguageClient("dotr", "dotr", serverOptions(settings), {
    documentSelector: LANGUAGES.map((language) => ({ scheme: "file", language })),
  });
  context.subscriptions.push(
    vscode.commands.registerCommand("dotr.restart", () => client.restart()),
  );
  try {
    await client.start();
  } catch (error) {
    const path = settings.get("path");
    vscode.window.showErrorMessage(
      `dotr: \`${path} lsp\` does not start (${error.message}). Install dotr with its extra lsp, or set dotr.path.`,
    );
  }
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
