// What components are written with: preact, its hooks, and htm, which reads their markup.
import { h } from 'preact';
import htm from 'htm';

export { h, render, Fragment, createContext } from 'preact';
export * from 'preact/hooks';
export const html = htm.bind(h);
